import assert from "node:assert/strict";
import { test } from "node:test";
import { administersServer, hasRole } from "../src/app/who";

const viewer = { subject: "user:vera", grants: [{ tenant: "shop", role: "viewer" }] };
const admin = { subject: "user:anna", grants: [{ tenant: "*", role: "admin" }] };

test("a role includes the lower ones", () => {
  assert.equal(hasRole(viewer, "viewer"), true);
  assert.equal(hasRole(viewer, "editor"), false);
  assert.equal(hasRole({ ...viewer, grants: [{ tenant: "shop", role: "editor" }] }, "viewer"), true);
  assert.equal(hasRole({ subject: "token:a", grants: [{ tenant: "shop", role: "ingest" }] }, "viewer"), false);
  assert.equal(hasRole({ subject: "user:new" }, "ingest"), false);
  assert.equal(hasRole(undefined, "ingest"), false);
});

test("where nobody is asked for a name, everybody may do everything", () => {
  assert.equal(hasRole({ subject: "anonymous" }, "admin"), true);
  assert.equal(administersServer({ subject: "anonymous" }), true);
});

test("the server is administered by whoever administers all tenants, without a selector", () => {
  assert.equal(administersServer(admin), true);
  assert.equal(administersServer({ ...admin, grants: [{ tenant: "shop", role: "admin" }] }), false);
  assert.equal(administersServer({ ...admin, grants: [{ tenant: "*", role: "admin", selector: '{team="a"}' }] }), false);
});
