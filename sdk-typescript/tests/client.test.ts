import assert from "node:assert/strict";
import { test } from "node:test";
import * as agentid from "agentid";
import { Client, ConfigurationError, Conflict, NotAuthenticated, NotFound, NotPossible, RateLimited, ServerFailed, Unavailable, UnexpectedAnswer, Unreachable } from "agentid";
import { API_KEY, BASE_URL, type Fate, between, client, makeAgent } from "./support.js";

const BUSY: Fate = { status: 503, headers: { "retry-after": "0" } };
const BODY = { name: "again", model_hash: "sha256:0" };

function clientOf(baseUrl: string, more: agentid.ClientOptions = {}): Client {
  return new Client({ baseUrl, retries: { firstWaitSeconds: 0.01 }, ...more });
}

test("an agent is registered, certified and verified", async () => {
  const agent = await makeAgent();
  const found = await client.certificates.verify(agent.serial);
  assert.deepEqual([found.status, found.agent_id, found.permitted_actions], ["active", agent.id, ["read", "pay"]]);
});

test("a list is iterated over all its pages", async () => {
  const agent = await makeAgent();
  const events = Array.from({ length: 5 }, (_, n) => ({ agentId: agent.id, actionType: "api_call" as const, details: { n } }));
  await client.events.recordBatch({ events });
  const numbers: unknown[] = [];
  for await (const event of client.events.list({ agent_id: agent.id, limit: 2 })) {
    numbers.push(event.details["n"]);
  }
  assert.deepEqual(numbers, [4, 3, 2, 1, 0]);
});

test("errors have the class of their status and the service's words", async () => {
  const nobody = new Client({ apiKey: "service_live_wrong" });
  const agent = await client.agents.register(BODY);
  await assert.rejects(client.agents.get(crypto.randomUUID()), (error) => error instanceof NotFound && error.message === "Agent not found");
  await assert.rejects(nobody.agents.get(agent.id), (error) => error instanceof NotAuthenticated && error.status === 401);
  await assert.rejects(client.events.record({ agentId: agent.id, actionType: "api_call" }), NotPossible);
  await assert.rejects(client.agents.register({ name: "" }), (error) => error instanceof agentid.Refused && error.status === 400);
  for (const path of ["..", "", undefined as never]) await assert.rejects(client.agents.get(path), TypeError);
});

test("what takes an idempotency key is tried again with it, and is done once", async () => {
  await using way = await between("lost", BUSY, { ...BUSY, status: 409 }, "passed");
  const name = crypto.randomUUID();
  await clientOf(way.baseUrl).agents.register({ ...BODY, name });
  assert.equal(new Set(way.seen.map((each) => each["idempotency-key"])).size, 1);
  assert.equal(way.seen.length, 4);
  const found = client.agents.list({ q: name });
  assert.deepEqual([(await found.next()).done, (await found.next()).done], [false, true]);
});

test("what may not be repeated is tried once", async () => {
  const agent = await makeAgent();
  await using way = await between(BUSY, BUSY, { ...BUSY, status: 409 }, { status: 409 }, "passed");
  const near = clientOf(way.baseUrl);
  await assert.rejects(near.agents.suspend(agent.id, { reason: "test" }), Unavailable);
  await assert.rejects(near.decide(agent.id, "pay", { resource: { type: "invoice", id: "1" }, approval: "receipt" }), Unavailable);
  await assert.rejects(near.agents.suspend(agent.id, { reason: "test" }), Conflict);
  await assert.rejects(near.agents.register(BODY), Conflict);
  assert.deepEqual([way.seen[0]?.["idempotency-key"], way.seen.length], [undefined, 4]);
  assert.equal((await client.agents.get(agent.id)).status, "active");
});

test("tries end: by their number, by the time that is asked for, and at what does not pass", async () => {
  const late = { "retry-after": new Date(Date.now() + 7_200_000).toUTCString() };
  const limited = { "retry-after": "3600" };
  const cases = [[BUSY, Unavailable, 5], [{ status: 429, headers: limited }, RateLimited, 1], [{ status: 500 }, ServerFailed, 1], [{ status: 503, headers: late }, Unavailable, 1]] as const;
  for (const [fate, kind, tries] of cases) {
    await using way = await between(fate);
    await assert.rejects(clientOf(way.baseUrl).agents.get("x"), kind);
    assert.equal(way.seen.length, tries);
  }
});

test("without an answer in time it is unreachable; a signal ends a call with its reason", async () => {
  await using way = await between("silent");
  const once = { timeoutSeconds: 1, retries: { tries: 2, firstWaitSeconds: 0.01 } };
  const reason = new Error("enough");
  await assert.rejects(clientOf(way.baseUrl, once).agents.get("x"), Unreachable);
  assert.equal(way.seen.length, 2);
  const stopping = new AbortController();
  const waiting = clientOf(way.baseUrl).agents.get("x", { signal: stopping.signal });
  stopping.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(clientOf("http://127.0.0.1:9", once).agents.get("x"), Unreachable);
});

test("redirects and other servers' pages are not read", async () => {
  const page = { status: 200, body: "<h1>hello</h1>", headers: { "content-type": "application/json" } };
  for (const fate of [page, { status: 302, headers: { location: "/elsewhere" } }]) {
    await using way = await between(fate);
    await assert.rejects(clientOf(way.baseUrl).agents.get("x"), UnexpectedAnswer);
  }
});

test("the key goes to the service alone, by TLS or to this machine, and is in no text", () => {
  const wrong = ["http://id.example.com", "ftp://id.example.com", "https://a@id.example.com", "https://id.example.com?a", "id"];
  wrong.forEach((baseUrl) => assert.throws(() => new Client({ baseUrl }), ConfigurationError, baseUrl));
  assert.throws(() => new Client({ apiKey: "a\nb" }), ConfigurationError);
  assert.ok(new Client({ baseUrl: "http://id.example.com", allowHttp: true }));
  assert.ok(!JSON.stringify(client).includes(API_KEY));
  assert.equal(client.transport.baseUrl, BASE_URL);
});

test("a call takes what is described", async () => {
  assert.equal(typeof (() => [
    // @ts-expect-error: no such call
    client.authorities.ocsp("a"),
    // @ts-expect-error: the path's value is missing
    client.agents.get(),
    // @ts-expect-error: not one of the action types
    client.events.record({ agentId: "a", actionType: "nothing" }),
    // @ts-expect-error: a batch is sent as JSON
    client.events.recordBatch("{}"),
  ]), "function");
  // @ts-expect-error: it takes no key
  await assert.rejects(client.agents.suspend("a", { reason: "test" }, { idempotencyKey: "k" }), TypeError);
});

test("an answer of text is text, another one octets", async () => {
  const [csv, lines] = ["text/csv", "application/jsonl"].map((kind) => ({ status: 200, body: "1", headers: { "content-type": kind } }));
  await using way = await between(csv as Fate, lines as Fate);
  const { auditLog } = clientOf(way.baseUrl);
  const found: (string | Uint8Array)[] = [await auditLog.export({ format: "csv" }), await auditLog.export({ format: "jsonl" })];
  assert.deepEqual(found, ["1", Uint8Array.of(49)]);
});
