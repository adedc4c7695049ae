/* SPDX-License-Identifier: Apache-2.0 */
/* src/web/operation_table.c */
#include "web/operation_table.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

static void
put(struct operation_table *table, unsigned number, Skycap__V1__Operation__State state)
{
    char id[32];
    Skycap__V1__Operation operation = SKYCAP__V1__OPERATION__INIT;
    snprintf(id, sizeof id, "v:local/%u", number);
    operation.id = operation.subject = id;
    operation.kind = "copy-volume";
    operation.state = state;
    operation_table_put(table, &operation, &(struct api_subject){"name", "source"});
}

static bool
shows(struct operation_table *table, unsigned number)
{
    char text[48];
    struct buffer out AUTO(buffer_clear) = {0};
    snprintf(text, sizeof text, "\"id\":\"v:local/%u\"", number);
    operation_table_print(table, &out);
    return strstr(buffer_text(&out), text) != NULL;
}

/* A thousand short copies within a minute do not hide one that takes long. */
static void
those_that_run_are_shown_beside_many_that_have_ended(void)
{
    struct operation_table *table = operation_table_new();
    put(table, 0, SKYCAP__V1__OPERATION__STATE__RUNNING);
    for (unsigned i = 1; i < OPERATION_TABLE_MAX; i++)
        put(table, i, SKYCAP__V1__OPERATION__STATE__SUCCEEDED);
    put(table, OPERATION_TABLE_MAX, SKYCAP__V1__OPERATION__STATE__RUNNING);
    CHECK(shows(table, 0));
    CHECK(!shows(table, 1));
    CHECK(shows(table, 2));
    CHECK(shows(table, OPERATION_TABLE_MAX));
    operation_table_free(table);
}

static void
a_full_table_stays_bounded(void)
{
    struct operation_table *table = operation_table_new();
    for (unsigned i = 0; i <= OPERATION_TABLE_MAX; i++)
        put(table, i, SKYCAP__V1__OPERATION__STATE__RUNNING);
    CHECK(shows(table, OPERATION_TABLE_MAX - 1));
    CHECK(!shows(table, OPERATION_TABLE_MAX));
    put(table, 0, SKYCAP__V1__OPERATION__STATE__FAILED);
    put(table, OPERATION_TABLE_MAX, SKYCAP__V1__OPERATION__STATE__RUNNING);
    CHECK(!shows(table, 0));
    CHECK(shows(table, OPERATION_TABLE_MAX));
    operation_table_free(table);
}

/* The server may have been too busy to tell the name when the operation began. */
static void
a_name_that_is_known_later_is_shown(void)
{
    struct operation_table *table = operation_table_new();
    struct buffer out AUTO(buffer_clear) = {0};
    Skycap__V1__Operation operation = SKYCAP__V1__OPERATION__INIT;
    operation.id = operation.subject = "v:local/1";
    operation.state = SKYCAP__V1__OPERATION__STATE__RUNNING;
    operation_table_put(table, &operation, &(struct api_subject){"", ""});
    operation_table_put(table, &operation, &(struct api_subject){"copy", "origin"});
    operation_table_print(table, &out);
    CHECK(strstr(buffer_text(&out), "\"subjectName\":\"copy\",\"sourceName\":\"origin\""));
    operation_table_free(table);
}

int
main(void)
{
    a_name_that_is_known_later_is_shown();
    those_that_run_are_shown_beside_many_that_have_ended();
    a_full_table_stays_bounded();
    return check_report("test_operation_table");
}
