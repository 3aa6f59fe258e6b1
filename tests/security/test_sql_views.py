"""What roles of the database see of two tenants: nothing without rights, everything by the views of schema hearth, and one tenant by
the views that docs/how-to/sql.md makes for one."""

import re
import subprocess
import unittest

from hidden import profile
from server import ROOT, Cluster, Server, eventually, sql

RED, BLUE = "crimson", "cerulean"  # tenants; every word of one begins with its name
# Called before any condition that costs more; an error tells the row that it was called with.
LEAKY = """SET enable_indexscan = off; SET enable_bitmapscan = off;
CREATE FUNCTION pg_temp.tell(t text) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN IF t LIKE '%%%s%%' THEN RAISE EXCEPTION 'saw %%', t; END IF; RETURN true; END $$; """ % BLUE
RELATIONS = """SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN ('hearth', 'hearth_data') AND c.relkind IN ('r', 'p', 'v')"""


class Views(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.server = Server("--multitenancy", "--row-level-security", "require", database_url=cls.cluster.url())
        for word in (RED, BLUE):
            labels = {"__name__": "process_cpu", "service_name": word + "shop", word + "label": word + "value"}
            cls.server.push(profile(word, 5, {}), labels, metadata=[("x-scope-orgid", word)])
            path = "/ingest?name=%sshop.%snonsense" % (word, word)
            cls.server.http("POST", path, b"a;b 1\n", {"X-Scope-OrgID": word})
        for view in ("applications", "ingest_errors"):  # the server writes both a moment after the answer
            eventually(lambda: len(cls.admin("SELECT DISTINCT tenant FROM hearth." + view)) == 2, what=view)
        cls.admin("CREATE ROLE nobody; CREATE ROLE reader")
        cls.admin("GRANT USAGE ON SCHEMA hearth TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA hearth TO reader")
        text = (ROOT / "docs/how-to/sql.md").read_text()
        script = re.search(r"```sql\n(CREATE SCHEMA shop;.*?)```", text, re.S).group(1).replace("shop", RED)
        subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", cls.cluster.url()], input=script, text=True, check=True)
        cls.views = [row[0] for row in cls.admin("SELECT viewname FROM pg_views WHERE schemaname = 'hearth' ORDER BY 1")]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cluster.stop()

    @classmethod
    def admin(cls, text):
        return sql(cls.cluster.url(), text)

    def seen(self, role, text):
        """All that the role gets, rows or errors."""
        try:
            return repr(self.admin("SET ROLE %s; %s" % (role, text)))
        except AssertionError as error:
            return str(error)

    def readable(self, role):
        """Relations of hearth that the role may read a column of."""
        may = " AND has_schema_privilege('%s', n.oid, 'USAGE') AND has_any_column_privilege('%s', c.oid, 'SELECT')" % (role, role)
        return sorted(row[0] for row in self.admin(RELATIONS + may))

    def test_a_role_without_rights_sees_no_relation(self):
        self.assertGreater(len(self.admin(RELATIONS)), 50)
        for role in ("nobody", RED + "_reader"):
            self.assertEqual(self.readable(role), [])
            self.assertIn("permission denied", self.seen(role, "TABLE hearth.series"))
            self.assertIn("permission denied", self.seen(role, "TABLE hearth_data.tenant"))

    def test_the_views_show_all_tenants_to_those_who_may_read_them(self):
        for view in self.views:
            found = self.seen("reader", "TABLE hearth." + view)
            self.assertTrue(RED in found and BLUE in found, (view, found))
        self.assertEqual([name for name in self.readable("reader") if not name.startswith("hearth.")], [])

    def test_views_of_one_tenant_show_one_tenant(self):
        self.assertEqual([row[0] for row in self.admin("SELECT viewname FROM pg_views WHERE schemaname = '%s' ORDER BY 1" % RED)], self.views)
        for view in self.views:
            found = self.seen(RED + "_reader", "TABLE %s.%s" % (RED, view))
            self.assertIn(RED, found, view)
            self.assertNotIn(BLUE, found, view)

    def test_a_function_of_the_reader_is_not_called_with_rows_of_others(self):
        self.admin("GRANT TEMPORARY ON DATABASE postgres TO %s_reader" % RED)
        for view in self.views:
            found = self.seen(RED + "_reader", LEAKY + "SELECT * FROM %s.%s v WHERE pg_temp.tell(v::text)" % (RED, view))
            self.assertIn(RED, found, view)
            self.assertNotIn(BLUE, found, view)

    def test_without_the_barrier_a_function_of_the_reader_is_called_with_rows_of_others(self):
        """So that the test above can fail."""
        self.admin("CREATE VIEW %s.open AS SELECT * FROM hearth.ingest_errors WHERE tenant = '%s'; GRANT SELECT ON %s.open TO reader;"
                   "GRANT USAGE ON SCHEMA %s TO reader" % (RED, RED, RED, RED))
        found = self.seen("reader", LEAKY + "SELECT * FROM %s.open v WHERE pg_temp.tell(v.message)" % RED)
        self.admin("DROP VIEW %s.open" % RED)
        self.assertRegex(found, "saw .*" + BLUE)

    def test_the_role_of_the_server_sees_nothing_of_the_views(self):
        role = self.admin("SELECT rolname FROM pg_roles WHERE rolname ~ '_tenant$' AND NOT rolcanlogin")[0][0]
        for view in self.views:
            self.assertIn("permission denied", self.seen(role, "TABLE hearth." + view))
        self.assertNotIn(BLUE, self.seen(role, "SELECT * FROM hearth_data.tenant; SELECT * FROM hearth_data.service; SELECT * FROM hearth_data.label_pair"))


if __name__ == "__main__":
    unittest.main()
