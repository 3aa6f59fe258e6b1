"""Accessibility of every page: no violation of axe-core's rules in both themes and both languages, and the tree that screen readers
read out."""

import re
import unittest

import tasks
from browser import Keys, PageTest, in_turns
from more_pages import MORE_PAGES, fill_more
from pprof import Profile
from server import now_ms

TRACE = "0123456789abcdef0123456789abcdef"
WORKED = {"button", "checkbox", "combobox", "link", "listbox", "menuitem", "option", "searchbox", "slider", "spinbutton", "textbox",
          "treegrid", "application", "image", "meter", "dialog"}
SHOP = {"q": '{service_name="shop"}'}


def profile(minutes, *stacks):
    made = Profile(
        [("cpu", "nanoseconds")], time_ns=(now_ms() - minutes * 60_000) * 1_000_000, duration_ns=10_000_000_000
    )
    for stack, value in stacks:
        made.add(stack.split(";"), [value], {"trace_id": TRACE, "span_id": "00000000000000a1"})
    return made.encode()


class Access(PageTest):
    @classmethod
    def fill(cls, server):
        labels = {"__name__": "process_cpu", "service_name": "shop", "region": "eu"}
        server.push(profile(50, ("main;handle;json.encode", 4_000_000_000), ("main;gone.by", 1_000_000_000)), labels)
        server.push(
            profile(5, ("main;handle;json.encode", 6_000_000_000), ("main;db/sql.(*DB).Query", 2_000_000_000)),
            labels,
            "00000000-0000-4000-8000-000000000001",
        )
        server.push(profile(5, ("main;work", 1_000_000_000)), {"__name__": "process_cpu", "service_name": "cart"})
        cls.task = tasks.create(server, "PPROF", instances=["shop-1"], events=["cpu"])
        fill_more(server)

    def pages(self):
        """(name, path, parameters, selector of what is clicked first or "")."""
        ids = " ".join(
            self.server.connect("adhocprofiles.v1.AdHocProfileService/Upload", {"name": name, "profile": text})["id"]
            for name, text in (
                ("before.txt", "bWFpbjtwYXJzZSA4MAo="),
                ("after.txt", "bWFpbjtwYXJzZSA2MAptYWluO25ldyAxMAo="),
            )
        )
        listed = self.server.connect(
            "hearth.v1.ProfileService/ListProfiles",
            {"filter": {"start": str(now_ms() - 3_600_000), "end": str(now_ms())}},
        )
        return [
            ("explore", "/", {"service": "shop"}, ""),
            ("empty", "/", {"from": "1000", "to": "2000"}, ""),
            ("profile", "/profile", {**SHOP, "by": "region"}, ""),
            (
                "transformed",
                "/profile",
                {**SHOP, "view": "flame", "search": "json", "flip": "1", "transforms": "hide main"},
                "",
            ),
            ("selector", "/profile", SHOP, "#edit-selector"),
            ("sandwich", "/profile", {**SHOP, "view": "sandwich", "function": "handle"}, ""),
            ("refused", "/profile", {"q": '{service_name=~"["}'}, ""),
            ("diff", "/diff", {**SHOP, "from": "now-27m"}, ""),
            ("traces", "/traces", {}, ""),
            ("trace", "/traces", {"id": TRACE}, ""),
            ("profiles", "/profiles", {}, ""),
            ("one profile", "/profiles", {"id": listed["profiles"][0]["id"]}, ""),
            ("files", "/adhoc", {}, ""),
            ("compared files", "/adhoc", {"ids": ids}, ""),
            ("tasks", "/tasks", {}, ""),
            ("new task", "/tasks", {}, ".headline button"),
            ("one task", "/tasks", {"id": self.task}, ""),
            ("admin", "/admin", {}, ""),
            ("help", "/help", {}, ""),
            ("commands", "/help", {}, "[aria-keyshortcuts]"),
            *((path + str(params), path, params, "") for path, params in MORE_PAGES),
        ]

    def heard(self):
        """(role, name, properties) of each node of the page that a screen reader meets, in its order."""
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        by_id = {node["nodeId"]: node for node in nodes}
        met = []

        def walk(node):
            if not node.get("ignored"):
                properties = {each["name"]: each["value"].get("value") for each in node.get("properties", [])}
                met.append((node["role"]["value"], node.get("name", {}).get("value", ""), properties))
            for child in node.get("childIds", []):
                if child in by_id:
                    walk(by_id[child])

        walk(nodes[0])
        return met

    def test_a_listener_walks_through_the_flame_graph_its_menu_and_the_commands(self):
        self.open("/help")
        self.choose("light", "en")
        self.open("/profile", **SHOP, view="flame")
        self.browser.find(".flame-canvas")
        self.browser.run("document.querySelector('.flame-twin').focus()")
        self.browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.browser.settle()
        met = self.heard()
        grid = next(properties for role, name, properties in met if (role, name) == ("treegrid", "Flame graph"))
        self.assertTrue(grid["focused"])
        rows = [(name, properties) for role, name, properties in met if role == "row" and "level" in properties]
        self.assertEqual(
            [(properties["level"], properties.get("expanded"), name) for name, properties in rows],
            [
                (1, True, "total, 13 s, 100.00%, 0 ns, 0.00%"),
                (2, True, "main, 13 s, 100.00%, 0 ns, 0.00%"),
                (3, True, "handle, 10 s, 76.92%, 0 ns, 0.00%"),
                (4, None, "json.encode, 10 s, 76.92%, 10 s, 76.92%"),
                (3, None, "db/sql.(*DB).Query, 2 s, 15.38%, 2 s, 15.38%"),
                (3, None, "gone.by, 1 s, 7.69%, 1 s, 7.69%"),
            ],
        )
        self.assertEqual([name for name, properties in rows if properties["selected"]], [rows[2][0]])
        live = next(i for i, (_, _, properties) in enumerate(met) if properties.get("live") == "polite" and met[i + 1][1].startswith("handle"))
        self.assertEqual(met[live + 1][1], "handle, total 76.92%, self 0.00%, 1 child")
        place = "const row = document.querySelector('[aria-selected=true]'); return [row.ariaPosInSet, row.ariaSetSize]"
        self.assertEqual(self.browser.run(place), ["1", "3"])

        self.browser.press((Keys.SHIFT, Keys.F10))
        self.browser.settle()
        met = self.heard()
        items = [(name, properties.get("focused")) for role, name, properties in met if role == "menuitem"]
        self.assertIn(("menu", "handle"), [(role, name) for role, name, _ in met])
        self.assertEqual(items[0], ("Focus on this function", True))
        self.browser.press(Keys.ESCAPE)

        self.browser.press((Keys.CONTROL, "k"))
        self.browser.find(".commands input").send_keys("diff")
        self.browser.settle()
        met = self.heard()
        self.assertTrue(next(properties for role, name, properties in met if (role, name) == ("dialog", "Commands"))["modal"])
        box = next(properties for role, _, properties in met if role == "combobox")
        self.assertEqual((box["focused"], box["expanded"], box["controls"]), (True, True, "commands"))
        self.assertEqual([properties["selected"] for role, _, properties in met if role == "option"][0], True)
        self.assertNotIn("treegrid", [role for role, _, _ in met])
        self.browser.press(Keys.ESCAPE)

    def faults(self):
        """What a listener stumbles over: names that say nothing, headings and landmarks that do not lead."""
        met = self.heard()
        found = ["%s is called %r" % (role, name) for role, name, _ in met if role in WORKED and not re.search(r"\w", name)]
        if any(role == "dialog" for role, _, _ in met):
            return found  # the rest of the page is out of reach
        levels = [properties["level"] for role, _, properties in met if role == "heading"]
        if levels.count(1) != 1 or levels[0] != 1 or any(b > a + 1 for a, b in zip(levels, levels[1:])):
            found.append("headings of the levels %s" % levels)
        for landmark in ("navigation", "region"):
            names = [name for role, name, _ in met if role == landmark]
            if "" in names or len(set(names)) < len(names):
                found.append("%s called %s" % (landmark, names))
        if [role for role, _, _ in met].count("main") != 1:
            found.append("no main part, or several")
        return found

    def test_no_page_violates_a_rule_or_leaves_a_listener_lost(self):
        found, pages = [], self.pages()
        self.open("/help")
        self.choose("light", "en")
        for look in ("light, English", "dark, Chinese"):
            self.open("/help")
            if look == "dark, Chinese":  # by the page's own buttons, which it remembers
                self.browser.run(
                    "document.querySelectorAll('header button.theme, header button[lang]').forEach((b) => b.click())"
                )
                self.browser.settle()
            for place, (name, path, params, click) in enumerate(pages):
                if look not in in_turns(["light, English", "dark, Chinese"], place):
                    continue
                if click:
                    self.open(path, **params)
                    self.browser.find(click).click()
                    self.browser.settle()
                else:
                    self.go(path, **params)
                found += self.browser.violations("%s, %s" % (name, look))
                if look == "light, English":
                    found += ["%s: %s" % (name, fault) for fault in self.faults()]
                if click:  # leaves its dialog
                    self.open("/help")
        self.assertEqual(found, [], "\n" + "\n".join(found))


if __name__ == "__main__":
    unittest.main()
