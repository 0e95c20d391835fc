import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { type Lost, Reporter, type ReporterOptions } from "agentid/reporting";
import { API_KEY, type Agent, type Fate, between, client, eventually, makeAgent } from "./support.js";

/** The numbers in the details of an agent's stored events, in the order they were stored in. */
async function numbersOf(agent: Agent): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const event of client.events.list({ agent_id: agent.id, limit: 500 })) {
    found.unshift(event.details["n"]);
  }
  return found;
}

function reporterOf(agent: Agent, options: ReporterOptions = {}): { reporter: Reporter; lost: Lost[] } {
  const lost: Lost[] = [];
  return { reporter: new Reporter(agent.id, { onLost: (each) => lost.push(each), ...options }), lost };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

test("events are stored in batches, once, in their order", async () => {
  const agent = await makeAgent();
  await using way = await between("passed");
  const { reporter, lost } = reporterOf(agent, { baseUrl: way.baseUrl });
  upTo(1_200).forEach((n) => assert.ok(reporter.report("data_access", { n, text: "Ωmega \\ud800 \\u0000" })));
  assert.ok(await reporter.flush(60));
  assert.deepEqual(await numbersOf(agent), upTo(1_200));
  assert.deepEqual(reporter.statistics(), { reported: 1_200, queued: 0, sent: 1_200, rejected: 0, dropped: 0, unsettled: 0 });
  assert.equal(way.seen.length, 3);
  assert.ok(await reporter.close());
  assert.deepEqual(lost, []);
});

test("batches and memory are bounded in octets", async () => {
  const agent = await makeAgent();
  await using way = await between("passed");
  const { reporter, lost } = reporterOf(agent, { baseUrl: way.baseUrl, maxQueuedBytes: 26 * 60_000 });
  const taken = upTo(26).map((n) => reporter.report("data_access", { n, text: "\u6f22".repeat(20_000) }));
  assert.ok(await reporter.flush(Number.POSITIVE_INFINITY));
  await reporter.close();
  assert.deepEqual([taken.indexOf(false), lost.length], [25, 1]);
  assert.deepEqual(await numbersOf(agent), upTo(25));
  assert.ok(way.seen.every((each) => Number(each["content-length"]) <= 512 * 1024));
});

test("what got no answer, or a proxy's or a passing one, is sent again under its key and stored once", async () => {
  const agent = await makeAgent();
  const later: Fate = { status: 200, body: JSON.stringify({ data: Array(3).fill({ status: 503, error: "later" }) }) };
  const busy: Fate = { status: 503, headers: { "retry-after": "0" } };
  await using way = await between(later, "lost", { status: 502, body: "<h1>proxy</h1>" }, busy, "passed");
  const { reporter } = reporterOf(agent, { baseUrl: way.baseUrl });
  upTo(3).forEach((n) => reporter.report("data_access", { n }));
  assert.ok(await reporter.close(60));
  assert.deepEqual(await numbersOf(agent), upTo(3));
  // Events that the service could not store, as it said of each, are sent again as another batch.
  const [first, ...others] = way.seen.map((each) => each["idempotency-key"]);
  assert.deepEqual([new Set(others).size, others.includes(first)], [1, false]);
});

test("what the service rejects is told with its words", async () => {
  const agent = await makeAgent();
  await client.agents.suspend(agent.id, { reason: "test" });
  const { reporter, lost } = reporterOf(agent);
  reporter.report("data_access", { n: 1 });
  await reporter.flush(60);
  await reporter.close();
  assert.deepEqual(lost.map(({ event, reason, status }) => [event.details["n"], reason, status]), [[1, "Agent is not active", 422]]);
  assert.equal(reporter.statistics().rejected, 1);
});

test("what can't be reported is told at once", async () => {
  const agent = await makeAgent();
  const { reporter, lost } = reporterOf(agent);
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  for (const details of [circle, { n: 1n }, { text: "\u0000" }, { text: "\ud800" }, { text: "x".repeat(70_000) }]) {
    assert.equal(reporter.report("data_access", details), false);
  }
  assert.equal(reporter.report("data_access", {}, { occurredAt: new Date(Date.now() + 600_000) }), false);
  for (const occurredAt of [new Date("never"), "2026-01-01" as never]) {
    assert.equal(reporter.report("data_access", {}, { occurredAt }), false);
  }
  assert.equal(reporter.report("data_access", {}, { sessionId: "x".repeat(256) }), false);
  await reporter.close();
  assert.equal(reporter.report("data_access", {}), false);

  assert.equal(lost.at(-1)?.reason, "the reporter is closed");
  assert.deepEqual([lost.length, reporter.statistics().dropped], [10, 10]);
});

test("memory is bounded, and what is left at the end is told", async () => {
  const agent = await makeAgent();
  await using way = await between("silent");
  const { reporter, lost } = reporterOf(agent, { baseUrl: way.baseUrl, maxQueued: 10, timeoutSeconds: 0.5 });
  const taken = upTo(20).map((n) => reporter.report("data_access", { n }));
  assert.deepEqual(taken, [...Array(10).fill(true), ...Array(10).fill(false)]);
  await eventually(async () => way.seen.length > 0);
  assert.equal(await reporter.close(0.1), false);
  assert.deepEqual(lost.map(({ event }) => event.details["n"]), [...upTo(20).slice(10), ...upTo(10)]);
  const { queued, dropped, unsettled } = reporter.statistics();
  assert.deepEqual([queued, dropped, unsettled], [0, 10, 10]);
});

test("a program that ends without close() still sends what it reported", async () => {
  const agent = await makeAgent();
  const program = `import { Reporter } from "agentid/reporting"; new Reporter("${agent.id}").report("data_access", { n: 7 });`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], { env: { ...process.env, AGENTID_API_KEY: API_KEY }, encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
  assert.deepEqual(await numbersOf(agent), [7]);
});
