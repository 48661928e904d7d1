# ncclwhich.m4: the few probes configure.ac needs.
#
# They are written here instead of taken from pkg-config or the autoconf archive, so that
# neither has to be installed: every dependency is one header and one archive.

# NW_CFLAG(VARIABLE, FLAG...)
# Append each FLAG to VARIABLE if the compiler takes it.  A compiler that only warns about a
# warning it does not know (clang) must not get it either, hence -Werror in the probe; and a
# negative form (-Wno-x) is accepted in silence by gcc whatever x is, so the positive one is asked.
AC_DEFUN([NW_CFLAG],
[m4_foreach_w([nw_flag], [$2],
[AC_CACHE_CHECK([whether $CC takes ]nw_flag, AS_TR_SH([nw_cv_cflag_]nw_flag),
  [nw_save_CFLAGS=$CFLAGS
   CFLAGS="$CFLAGS -Werror m4_bpatsubst(nw_flag, [^-Wno-], [-W])"
   AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[int nw_probe (void);]], [[return 0;]])],
     AS_TR_SH([nw_cv_cflag_]nw_flag)[=yes], AS_TR_SH([nw_cv_cflag_]nw_flag)[=no])
   CFLAGS=$nw_save_CFLAGS])
AS_VAR_IF(AS_TR_SH([nw_cv_cflag_]nw_flag), [yes], [$1="$$1 nw_flag"])
])])

# NW_LDFLAG(VARIABLE, FLAG)
# Append FLAG to VARIABLE if a program links with it.
AC_DEFUN([NW_LDFLAG],
[AC_CACHE_CHECK([whether the linker takes $2], AS_TR_SH([nw_cv_ldflag_$2]),
  [nw_save_LDFLAGS=$LDFLAGS
   LDFLAGS="$LDFLAGS $2"
   AC_LINK_IFELSE([AC_LANG_PROGRAM], AS_TR_SH([nw_cv_ldflag_$2])[=yes], AS_TR_SH([nw_cv_ldflag_$2])[=no])
   LDFLAGS=$nw_save_LDFLAGS])
AS_VAR_IF(AS_TR_SH([nw_cv_ldflag_$2]), [yes], [$1="$$1 $2"])
])

# NW_HEADER(HEADER)
# A header that the build cannot do without.
AC_DEFUN([NW_HEADER],
[AC_CHECK_HEADER([$1], [],
  [AC_MSG_ERROR([cannot find the header $1; ./bootstrap installs what is missing])])
])

# NW_LIB(VARIABLE, NAME, FUNCTION, [OTHER-LIBS], [IF-MISSING])
# Set VARIABLE to what links libNAME: its static archive when there is one that links (a run of
# ncclwhich is so short that mapping a dozen shared libraries would be most of it), else the shared library.
AC_DEFUN([NW_LIB],
[AC_CACHE_CHECK([how to link lib$2], [nw_cv_lib_$2],
  [nw_cv_lib_$2=no
   nw_save_LIBS=$LIBS
   nw_tries="-l$2"
   AS_IF([test "x$enable_static_deps" != xno], [nw_tries="-l:lib$2.a $nw_tries"])
   for nw_try in $nw_tries; do
     LIBS="$nw_try $4 $nw_save_LIBS"
     AC_LINK_IFELSE([AC_LANG_CALL([], [$3])], [nw_cv_lib_$2=$nw_try])
     test "x$nw_cv_lib_$2" = xno || break
   done
   LIBS=$nw_save_LIBS])
AS_IF([test "x$nw_cv_lib_$2" = xno],
  [m4_default([$5], [AC_MSG_ERROR([cannot link lib$2; ./bootstrap installs what is missing])])],
  [$1="$nw_cv_lib_$2 $4"])
AC_SUBST([$1])
])

# NW_PROG_PYTHON
# Set PYTHON to a Python 3 that has PyYAML (the tests read their expectations with it), or to "no".
# More than one Python may be on the machine, and the first on PATH is often not the one that
# the distribution's python3-yaml belongs to.
AC_DEFUN([NW_PROG_PYTHON],
[AC_ARG_VAR([PYTHON], [Python 3 with PyYAML, for the tests])
AC_CACHE_CHECK([for a Python 3 with PyYAML], [nw_cv_prog_python],
  [nw_cv_prog_python=no
   for nw_try in "$PYTHON" python3 /usr/bin/python3; do
     test -n "$nw_try" || continue
     AS_IF([$nw_try -c 'import sys, yaml; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1],
       [nw_cv_prog_python=`$nw_try -c 'import sys; print(sys.executable)'`; break])
   done])
PYTHON=$nw_cv_prog_python
])
