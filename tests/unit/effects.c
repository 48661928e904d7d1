/* Versions in order, and what a crossing between two of them does: cells that were measured. */
#include "test.h"

#include "verdict/effects.h"

#define X86 "x86-64"

static const struct target *nccl(void)
{
	assert_true(data_embedded.n_targets > 0);
	assert_string_equal(data_embedded.targets[0]->name, "nccl");
	return data_embedded.targets[0];
}

static void versions_are_numbers(void **state)
{
	(void)state;
	assert_true(data_version_compare("2.9.9", "2.10.3") < 0);
	assert_true(data_version_compare("2.30.7", "2.27.7") > 0);
	assert_int_equal(data_version_compare("2.18.1", "2.18.1"), 0);
	assert_true(data_version_compare("2.18.1", "2.18.3") < 0);
	assert_int_equal(data_version_code("2.18.1"), 21801);
	assert_int_equal(data_version_code("2.18"), 0);
	assert_int_equal(data_version_code("2.18.1x"), 0);
	assert_int_equal(data_version_code(NULL), 0);
}

static void assert_trouble(struct first_trouble got, enum outcome outcome)
{
	assert_string_equal(outcome_name(got.outcome), outcome_name(outcome));
	assert_non_null(got.effect);
}

static void id_works_within_its_era(void **state)
{
	const struct target *t = nccl();

	(void)state;
	assert_trouble(id_between_versions(t, "2.30.7", "2.29.7"), OUTCOME_NONE);
	assert_trouble(id_between_versions(t, "2.20.5", "2.22.3"), OUTCOME_NONE);
	assert_trouble(id_between_versions(t, "2.22.3", "2.30.7"), OUTCOME_HANG);
	assert_trouble(id_between_versions(t, "2.27.7", "2.30.7"), OUTCOME_HANG);
	assert_trouble(id_between_versions(t, "2.30.7", "2.22.3"), OUTCOME_UNDEFINED);
	assert_trouble(id_between_versions(t, "2.30.7", NULL), OUTCOME_UNKNOWN);
	assert_trouble(id_between_versions(t, "9.0.0", "2.30.7"), OUTCOME_UNKNOWN);
}

static void communicator_is_refused_by_another_layout(void **state)
{
	const struct target *t = nccl();

	(void)state;
	assert_trouble(comm_between_versions(t, X86, "2.27.3", "2.27.7"), OUTCOME_NONE);
	assert_trouble(comm_between_versions(t, X86, "2.27.7", "2.30.7"), OUTCOME_ERROR);
	assert_trouble(comm_between_versions(t, X86, "2.27.7", "2.20.5"), OUTCOME_CRASH); /* checks nothing */
	assert_trouble(comm_between_versions(t, X86, "9.0.0", "2.30.7"), OUTCOME_UNKNOWN);
	assert_trouble(comm_between_versions(t, X86, "9.0.0", "9.0.0"), OUTCOME_NONE);
	assert_trouble(comm_between_versions(t, X86, NULL, NULL), OUTCOME_UNKNOWN);
	assert_trouble(comm_between_versions(t, "AArch64", "2.27.7", "2.30.7"), OUTCOME_UNKNOWN);
}

/* The pair that the project grew from. */
static void self_call_fails_the_first_collective(void **state)
{
	struct first_trouble f = crossing_effect(nccl(), X86, "ncclCommGetAsyncError", "2.27.7", "2.30.7");

	(void)state;
	assert_trouble(f, OUTCOME_ERROR);
	assert_int_equal(f.phase, PHASE_FIRST_COLLECTIVE);
	f = crossing_of_versions(nccl(), X86, "2.27.7", "2.30.7");
	assert_trouble(f, OUTCOME_ERROR);
	assert_int_equal(f.phase, PHASE_FIRST_COLLECTIVE);
	assert_trouble(crossing_of_versions(nccl(), X86, "2.27.3", "2.27.7"), OUTCOME_NONE);
}

/* Not even beside a copy of itself. */
static void version_2_29_7_dies_while_it_initialises(void **state)
{
	struct first_trouble f = crossing_of_versions(nccl(), X86, "2.29.7", "2.29.7");

	(void)state;
	assert_trouble(f, OUTCOME_CRASH);
	assert_int_equal(f.phase, PHASE_INIT);
}

static void harmless_functions_do_nothing(void **state)
{
	(void)state;
	assert_trouble(crossing_effect(nccl(), X86, "ncclGetErrorString", "2.27.7", "2.30.7"), OUTCOME_NONE);
	assert_trouble(crossing_effect(nccl(), X86, "ncclGetVersion", "2.27.7", "2.30.7"), OUTCOME_NONE);
	assert_trouble(crossing_effect(nccl(), X86, "noSuchFunction", "2.27.7", "2.30.7"), OUTCOME_NONE);
}

static void first_trouble_is_the_earliest_then_the_worst(void **state)
{
	struct first_trouble none = {PHASE_INIT, OUTCOME_NONE, ""}, init = {PHASE_INIT, OUTCOME_ERROR, ""},
			     later = {PHASE_LATER, OUTCOME_CRASH, ""}, worse = {PHASE_INIT, OUTCOME_CRASH, ""};

	(void)state;
	assert_true(trouble_comes_first(init, later));
	assert_false(trouble_comes_first(later, init));
	assert_true(trouble_comes_first(worse, init));
	assert_true(trouble_comes_first(later, none));
	assert_false(trouble_comes_first(none, later));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_numbers), cmocka_unit_test(id_works_within_its_era),
		cmocka_unit_test(communicator_is_refused_by_another_layout),
		cmocka_unit_test(self_call_fails_the_first_collective),
		cmocka_unit_test(version_2_29_7_dies_while_it_initialises), cmocka_unit_test(harmless_functions_do_nothing),
		cmocka_unit_test(first_trouble_is_the_earliest_then_the_worst),
	};

	return run_all(tests);
}
