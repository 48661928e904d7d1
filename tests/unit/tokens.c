/* $ORIGIN, $LIB and $PLATFORM: the grammar before and since 2.28, and in a set-id process. */
#include "test.h"

#include "loader/tokens.h"

static struct names names;
static const char *system_dir[] = {"/lib/x86_64-linux-gnu/", "/usr/lib/"};

static struct token_values values(int version)
{
	return (struct token_values){.origin = "/opt/app", .lib = "lib/x86_64-linux-gnu", .platform = "haswell",
				     .version = version, .system_dir = system_dir, .n_system_dir = 2};
}

static void assert_expands(const char *text, const struct token_values *v, const char *wanted)
{
	const char *out = tokens_expand(text, v, &names);

	if (wanted) {
		assert_non_null(out);
		assert_string_equal(out, wanted);
	} else {
		assert_null(out);
	}
}

static void tokens_have_values(void **state)
{
	struct token_values v = values(236);

	(void)state;
	assert_expands("$ORIGIN/../$LIB", &v, "/opt/app/../lib/x86_64-linux-gnu");
	assert_expands("${ORIGIN}", &v, "/opt/app");
	assert_expands("/x/$PLATFORM", &v, "/x/haswell");
	assert_expands("/plain:path", &v, "/plain:path");
	assert_expands("", &v, "");
}

static void braces_and_words_end_a_token(void **state)
{
	struct token_values v = values(236);

	(void)state;
	assert_expands("$ORIGIN-1", &v, "/opt/app-1");
	assert_expands("$ORIGIN$LIB", &v, "/opt/applib/x86_64-linux-gnu");
	assert_expands("$LIBabc", &v, "$LIBabc");
	assert_expands("$LIB_1", &v, "$LIB_1");
	assert_expands("${LIB}abc", &v, "lib/x86_64-linux-gnuabc");
	assert_expands("${LIB", &v, "${LIB");
	assert_expands("${LIB abc}", &v, "${LIB abc}");
	assert_expands("$UNKNOWN/$", &v, "$UNKNOWN/$");
	assert_expands("$$ORIGIN", &v, "$/opt/app");
	assert_true(tokens_any("/a/$ORIGIN", 236));
	assert_false(tokens_any("/a/$ORIGINAL/${ORIGIN", 236));
}

static void before_2_28_a_slash_or_the_end_has_to_follow(void **state)
{
	struct token_values v = values(227);

	(void)state;
	assert_expands("$ORIGIN/x", &v, "/opt/app/x");
	assert_expands("/x/$LIB", &v, "/x/lib/x86_64-linux-gnu");
	assert_expands("$ORIGIN-1", &v, "$ORIGIN-1");
	assert_expands("$ORIGIN$LIB", &v, "$ORIGINlib/x86_64-linux-gnu");
	assert_expands("${ORIGIN}-1", &v, "/opt/app-1");
}

static void token_without_value_voids_the_whole(void **state)
{
	struct token_values v = values(236);

	(void)state;
	v.origin = NULL;
	assert_expands("/a/$ORIGIN/b", &v, NULL);
	assert_expands("$LIB", &v, "lib/x86_64-linux-gnu");
	assert_expands("$ORIGINAL", &v, "$ORIGINAL");
}

static void set_id_process_trusts_default_directories_only(void **state)
{
	struct token_values v = values(236);

	(void)state;
	v.secure = v.for_executable = true;
	assert_expands("$ORIGIN/lib", &v, NULL);
	assert_expands("/x/$LIB", &v, "/x/lib/x86_64-linux-gnu"); /* no origin in it */
	v.origin = "/usr/lib/app";
	assert_expands("$ORIGIN", &v, "/usr/lib/app");
	assert_expands("$ORIGIN/./x//y", &v, "/usr/lib/app/./x//y");
	assert_expands("$ORIGIN/../../evil", &v, NULL); /* /usr/evil */
	assert_expands("$ORIGIN/../../../../..", &v, NULL);
	assert_expands("/x/$ORIGIN", &v, NULL);         /* not at the start */
	assert_expands("$ORIGIN-1", &v, NULL);          /* no slash behind it */
	v.for_executable = false; /* a library's is not checked, only its place */
	v.origin = "/opt/app";
	assert_expands("$ORIGIN/lib", &v, "/opt/app/lib");
	assert_expands("/x/$ORIGIN", &v, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_have_values), cmocka_unit_test(braces_and_words_end_a_token),
		cmocka_unit_test(before_2_28_a_slash_or_the_end_has_to_follow),
		cmocka_unit_test(token_without_value_voids_the_whole),
		cmocka_unit_test(set_id_process_trusts_default_directories_only),
	};
	int failed = run_all(tests);

	names_free(&names);
	return failed;
}
