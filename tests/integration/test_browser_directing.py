"""The pages that direct agents, used by a browser: policies, the network of an instance, tasks and their results."""

import unittest

import directing_data
import task_data
from agents import Process
from browser import PageTest
from directing_data import HOUR, SECOND
from pprof import Profile
from server import now_ms

POLICIES = "hearth.v1.PolicyService/"


class Directing(PageTest):
    OPTIONS = ()

    @classmethod
    def fill(cls, server):
        directing_data.fill_policy(server, 0.6)
        directing_data.fill_network(server, 4)

    def tearDown(self):
        super().tearDown()
        self.assertIsNone(self.browser.run("return window.hacked ?? null"))

    def actions(self):
        """The driver's chains of actions, for dragging."""
        from selenium.webdriver import ActionChains  # require_browser skips where it is missing
        return ActionChains(self.browser.driver)

    def click(self, css, text):
        self.browser.find_text(css, text).click()

    def press(self, css, *keys):
        self.browser.find(css).send_keys(*keys)

    def type(self, css, text):
        """As a person who replaces the value of a field."""
        self.browser.find(css).clear()
        self.press(css, text, "\ue004")

    # ---- policies ----

    def stored(self, service="shop"):
        policy = self.server.connect(POLICIES + "GetPolicy", {"service": service})["policy"]
        return {(t["kind"], i["monitor"]): int(i["threshold"]) for t in policy["targets"] for i in t["checkItems"]}

    def fired(self):
        return self.browser.find(".trial .figure").text

    def test_the_number_of_triggers_follows_a_dragged_threshold_and_saving_keeps_the_other_rules(self):
        self.open("/policies", service="shop", **{"from": "now-1h"})
        before = self.fired()
        slider = self.browser.find("[role=slider]")
        self.assertEqual(slider.get_attribute("aria-valuetext"), "80%")
        actions = self.actions()
        actions.click_and_hold(slider).move_by_offset(0, -90).perform()
        self.browser.until(lambda: self.fired() != before, "another number while the threshold is held")
        self.assertNotIn("edits", self.params())
        self.actions().release().perform()
        self.browser.until(lambda: "edits" in self.params(), "the change in the address")
        self.browser.driver.back()
        self.browser.until(lambda: self.fired() == before, "the number of before: back is undo")
        self.press("[role=slider]", "\ue013", "\ue013")
        moved = lambda: self.browser.find("[role=slider]").get_attribute("aria-valuetext") == "82%"
        self.browser.until(moved, "two steps of the arrow key")
        self.click("button", "Save policy")
        self.browser.find_text("[role=status]", "version")
        self.assertEqual(self.stored(), {("TASK_KIND_ON_CPU", "MONITOR_KIND_PROCESS_CPU"): 82,
                                         ("TASK_KIND_NETWORK", "MONITOR_KIND_HTTP_ERROR_RATE"): 5})
        self.assertNotIn("edits", self.params())

    def test_a_change_by_another_user_is_not_overwritten(self):
        directing_data.set_policy(self.server, "cart", [directing_data.CPU])
        self.open("/policies", service="cart")
        self.type(".rule input[type=number]", "70")
        self.browser.until(lambda: "edits" in self.params(), "the change in the address")
        other = {**directing_data.CPU, "monitor": "MONITOR_KIND_SYSTEM_LOAD", "threshold": "9"}
        directing_data.set_policy(self.server, "cart", [directing_data.CPU, other])
        self.click("button", "Save policy")
        self.browser.find_text("[role=alert]", "Somebody changed the policy")
        self.browser.find_text(".rule", "load of the machine")
        self.click("button", "Save policy")
        self.browser.find_text("[role=status]", "version 3")
        self.assertEqual(self.stored("cart"), {("TASK_KIND_ON_CPU", "MONITOR_KIND_PROCESS_CPU"): 70,
                                               ("TASK_KIND_ON_CPU", "MONITOR_KIND_SYSTEM_LOAD"): 9})
        self.click("tr button", "Edit from here")
        self.browser.until(lambda: "edits" in self.params(), "what leads back to the earlier version")

    def test_a_refusal_of_the_server_stands_at_its_field(self):
        self.open("/policies", service="shop", edits="ON_CPU PROCESS_CPU 80 10 11")
        self.browser.find_text(".rule .error", "count must be equal to or smaller than period")
        wrong = self.browser.find(".rule [aria-invalid=true]")
        self.assertEqual(wrong.get_attribute("value"), "11")
        self.assertFalse(self.browser.find_text("button", "Save policy").is_enabled())

    def push_profile(self, at_ms, seconds):
        """A CPU profile of the process whose policy started a task."""
        profile = Profile([("cpu", "nanoseconds")], time_ns=at_ms * 10**6).add(["main"], [seconds * 10**9])
        labels = {"service_name": "shop", "instance": "pod-1", "process_name": "app"}
        self.server.push(profile.encode(), {"__name__": "process_cpu", **labels})

    def test_a_policy_links_to_the_tasks_that_it_started(self):
        now = now_ms()
        self.push_profile(now - HOUR, seconds=1)
        self.push_profile(now, seconds=2)
        self.open("/policies")
        self.click("tbody button", "shop")
        self.browser.find_text("tbody td", "CPU of a process: 97.5% ≥ 80%")
        self.browser.find_text("tbody td", "silent until")
        self.assertIn("bob", self.browser.find_text("tbody tr", "on-CPU profiling by CPU of a process: 80%").text)
        self.click("tbody a", "Diff against an hour before")
        self.browser.find_text(".verdict", "changed by +100.00%")
        self.assertEqual(self.params()["against"], "hour")
        self.assertEqual(self.params()["q"], '{service_name="shop", instance="pod-1", process_name="app"}')

    # ---- network ----

    def test_the_network_is_read_by_keys_and_its_names_are_text(self):
        self.open("/network", service="shop")
        self.browser.find_text(".node text", "proxy")
        self.assertEqual(self.browser.run("return document.querySelectorAll('main img, main b').length"), 0)
        self.press(".drawing", "\ue015", "\ue015")
        whole = self.browser.find(".detail").text
        self.assertIn("→", whole)
        self.press(".drawing", "\ue007")
        self.browser.until(lambda: "call" in self.params(), "the connection in the address")
        self.browser.find(".timeline canvas")
        chosen = self.browser.find("tr[aria-selected=true] button")
        self.assertEqual(chosen.get_attribute("aria-label"), whole.split(" · ")[0])
        self.open("/network", service="shop", instance="pod-1")
        self.browser.find_text("tbody td", "client")
        self.browser.find_text("tbody td", "/min")
        self.click("tbody button", "/slow?token=[redacted]")
        self.browser.find_text("pre", "Authorization: [redacted]")
        self.browser.find_text("pre", "<script>")
        self.browser.driver.back()
        self.browser.find(".drawing")

    def test_an_instance_without_data_leads_to_a_task_for_it(self):
        self.open("/network", service="shop", instance="pod-2")
        self.click("a", "Start a network task")
        self.browser.find_text(".choice:has(:checked)", "network")
        self.assertEqual(self.params()["instances"], "pod-2")

    # ---- tasks ----

    def test_results_appear_while_a_task_runs(self):
        task_id = directing_data.fill_stacks(self.server, "live")
        self.open("/tasks", id=task_id)
        self.browser.find_text(".result .figure", "174 dumps so far")
        self.browser.find(".flame canvas")
        app = Process("live", "pod-1", "app")
        begin = now_ms() - 10 * SECOND
        flush = task_data.metadata(task_id, app.process_id, begin, begin + 5 * SECOND)
        task_data.collect(self.server, [task_data.on_cpu((1, 2), 26, user="main-late", task=flush)])
        self.browser.find_text(".result .figure", "200 dumps so far")
        self.click(".tabs button", "Profile")
        self.browser.find_text(".tabs button", "process_cpu cpu")
        self.browser.find(".flame canvas")
        self.click("button", "Cancel task")
        self.browser.find_text(".headline .figure", "cancelled")

    def test_requests_and_files_of_tasks_are_analysed(self):
        self.open("/tasks", id=directing_data.fill_snapshots(self.server))
        self.click(".spans button", "SELECT")
        self.browser.find_text("h2", "Thread snapshots of SELECT * FROM <i>orders</i>")
        self.browser.find(".flame canvas")
        self.open("/tasks", id=directing_data.fill_upload(self.server))
        self.browser.find_text(".result .figure", "6 MiB")
        self.browser.find_text(".plain-list button", "Download")

    def test_an_impossible_kind_is_disabled_with_the_reason(self):
        directing_data.fill_upload(self.server, "golang")
        self.open("/tasks", new="1", service="golang")
        row = self.browser.find_text(".choice", "async-profiler")
        self.assertIn("its instances run go", row.text)
        self.assertFalse(row.find_element("css selector", "input").is_enabled())
        self.assertIn("no agent", self.browser.find_text(".choice", "on CPU").text)
        self.click(".choice", "thread snapshots")
        self.type("input:not([type]):not([name])", "/pay")
        self.click("button", "Start task")
        self.browser.find_text("h1", "thread snapshots of slow requests: golang")


if __name__ == "__main__":
    unittest.main()
