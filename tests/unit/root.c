/* The file system being looked at: links, "..", the forty, what is supposed. */
#include "test.h"

#include "root/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

static char top[64];
static struct names names;
static struct root *root;

static const char *host(const char *path)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s/root%s", top, path);
	return text;
}

static void file(const char *path)
{
	int fd = open(host(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "inside", 6), 6);
	close(fd);
}

static void link_to(const char *target, const char *path)
{
	assert_int_equal(symlink(target, host(path)), 0);
}

static int set_up(void **state)
{
	struct error e = {0};
	char path[64], target[128];
	int i, fd;

	(void)state;
	strcpy(top, "/tmp/ncclwhich-root.XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(mkdir(host(""), 0755), 0);
	assert_int_equal(mkdir(host("/a"), 0755), 0);
	assert_int_equal(mkdir(host("/a/b"), 0755), 0);
	file("/a/f");
	snprintf(target, sizeof(target), "%s/secret", top);
	fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	link_to("/a/f", "/absolute");
	link_to("a/b/../f", "/relative");
	link_to("../../../../a/f", "/a/b/up");
	link_to(target, "/out");
	link_to("../secret", "/out2");
	link_to("/..", "/outdir");
	link_to("nothing", "/dangling");
	link_to("self", "/self");
	link_to("a/b", "/dir");
	link_to("f", "/a/l0");
	for (i = 1; i <= 50; i++) {
		snprintf(path, sizeof(path), "/a/l%d", i);
		snprintf(target, sizeof(target), "l%d", i - 1);
		link_to(target, path);
	}
	snprintf(path, sizeof(path), "%s/root/a/hard", top);
	assert_int_equal(link(host("/a/f"), path), 0);
	root = root_new(host(""), &names, &e);
	assert_non_null(root);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	root_free(root);
	names_free(&names);
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

static int look(const char *path)
{
	struct root_file *f;

	return root_lookup(root, names_add(&names, path), &f);
}

static const char *real(const char *path)
{
	struct root_file *f;

	assert_int_equal(root_lookup(root, names_add(&names, path), &f), 0);
	return f->real;
}

static void links_are_followed_inside(void **state)
{
	(void)state;
	assert_string_equal(real("/absolute"), "/a/f");
	assert_string_equal(real("/relative"), "/a/f");
	assert_string_equal(real("/a/b/up"), "/a/f");
	assert_string_equal(real("/dir/../f"), "/a/f"); /* ".." of where the link leads */
	assert_string_equal(real("//a/.//b/../f"), "/a/f");
	assert_int_equal(look("/f"), -ENOENT);
	assert_int_equal(look("/a/f/"), -ENOTDIR);
	assert_int_equal(look("/a/f/x"), -ENOTDIR);
}

static void nothing_outside_is_reached(void **state)
{
	(void)state;
	assert_string_equal(real("/../../.."), "/");
	assert_string_equal(real("/../../../a/f"), "/a/f");
	assert_int_equal(look("/out"), -ENOENT);
	assert_int_equal(look("/out2"), -ENOENT);
	assert_int_equal(look("/outdir/secret"), -ENOENT);
	assert_string_equal(real("/outdir/a/f"), "/a/f");
}

static void forty_links_are_followed(void **state)
{
	(void)state;
	assert_int_equal(look("/a/l39"), 0); /* 40 links */
	assert_int_equal(look("/a/l40"), -ELOOP);
	assert_int_equal(look("/self"), -ELOOP);
	assert_int_equal(look("/self/x"), -ELOOP);
}

/* In any order: an answer for one path says nothing about the links of another. */
static void links_before_do_not_count_for_a_path(void **state)
{
	int i;
	char path[64];

	(void)state;
	assert_int_equal(look("/a/l50"), -ELOOP);
	for (i = 49; i >= 0; i--) {
		snprintf(path, sizeof(path), "/a/l%d", i);
		assert_int_equal(look(path), i < 40 ? 0 : -ELOOP);
	}
	assert_int_equal(look("/a/l20"), 0);
	assert_int_equal(look("/a/l45"), -ELOOP);
}

static void one_inode_is_one_file(void **state)
{
	struct root_file *a, *b;

	(void)state;
	assert_int_equal(root_lookup(root, names_add(&names, "/a/f"), &a), 0);
	assert_int_equal(root_lookup(root, names_add(&names, "/a/hard"), &b), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(a->size, 6);
}

static void long_names_are_refused(void **state)
{
	char text[PATH_MAX + 10];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[0] = '/';
	text[257] = '\0';
	assert_int_equal(look(text), -ENAMETOOLONG);
	text[256] = '\0';
	assert_int_equal(look(text), -ENOENT);
	memset(text, '/', sizeof(text) - 1);
	text[PATH_MAX] = '\0';
	assert_int_equal(look(text), -ENAMETOOLONG);
	text[PATH_MAX - 1] = '\0';
	assert_int_equal(look(text), 0);
}

static void dangling_links_are_told_from_nothing(void **state)
{
	(void)state;
	assert_int_equal(look("/dangling"), -ENOENT);
	assert_string_equal(root_link_target(root, names_add(&names, "/dangling")), "nothing");
	assert_null(root_link_target(root, names_add(&names, "/nothing")));
	assert_null(root_link_target(root, names_add(&names, "/a/f")));
}

static void supposed_links_come_and_go(void **state)
{
	(void)state;
	assert_int_equal(look("/a/new"), -ENOENT);
	root_suppose_link(root, "/a/new", "f");
	assert_string_equal(real("/a/new"), "/a/f");
	assert_string_equal(real("/dir/../new"), "/a/f");
	root_suppose_link(root, "/a/f", "/dangling"); /* instead of a file that is there */
	assert_int_equal(look("/a/new"), -ENOENT);
	root_suppose_nothing(root);
	assert_int_equal(look("/a/new"), -ENOENT);
	assert_string_equal(real("/a/f"), "/a/f");
}

static void only_regular_files_are_opened(void **state)
{
	struct root_file *f;
	char text[8] = "";
	int fd;

	(void)state;
	assert_int_equal(root_lookup(root, names_add(&names, "/a/b/up"), &f), 0);
	fd = root_open(root, f);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 6);
	assert_string_equal(text, "inside");
	close(fd);
	assert_int_equal(root_lookup(root, names_add(&names, "/a"), &f), 0);
	assert_int_equal(root_open(root, f), -EINVAL);
	assert_true(root_is_directory(root, names_add(&names, "/dir")));
	assert_false(root_is_directory(root, names_add(&names, "/a/f")));
}

/* The tree is taken not to change; if it does, the open is confined still. */
static void link_put_in_the_way_is_not_followed(void **state)
{
	struct root_file *f;
	char target[128];

	(void)state;
	file("/a/b/late");
	assert_int_equal(root_lookup(root, names_add(&names, "/a/b/late"), &f), 0);
	snprintf(target, sizeof(target), "%s/secret", top);
	assert_int_equal(unlink(host("/a/b/late")), 0);
	link_to(target, "/a/b/late");
	assert_true(root_open(root, f) < 0);
	assert_int_equal(unlink(host("/a/b/late")), 0);
}

static void listing_is_sorted(void **state)
{
	struct root_listing listing = {0};

	(void)state;
	assert_int_equal(root_list(root, names_add(&names, "/dir/.."), &listing), 0);
	assert_int_equal(listing.name.n, 54);
	assert_string_equal(listing.name.at[0], "b");
	assert_string_equal(listing.name.at[1], "f");
	assert_string_equal(listing.name.at[2], "hard");
	vec_free(&listing.name);
	assert_int_equal(root_list(root, names_add(&names, "/a/f"), &listing), -ENOTDIR);
	assert_int_equal(root_list(root, names_add(&names, "/none"), &listing), -ENOENT);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(links_are_followed_inside), test(nothing_outside_is_reached), test(forty_links_are_followed),
		test(links_before_do_not_count_for_a_path), test(one_inode_is_one_file), test(long_names_are_refused),
		test(dangling_links_are_told_from_nothing), test(supposed_links_come_and_go),
		test(only_regular_files_are_opened), test(link_put_in_the_way_is_not_followed), test(listing_is_sorted),
	};

	return run_all(tests);
}
