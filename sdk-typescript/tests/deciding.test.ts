import assert from "node:assert/strict";
import { test } from "node:test";
import { ApprovalTimedOut, Client, Denied, NotFound, Unavailable, asking } from "agentid";
import { type Fate, IS_ATTENDED, between, client, eventually, makeAgent } from "./support.js";

const resource = { type: "invoice", id: "2026-0042" };
const payment = { resource, actionType: "transaction_initiated", details: { amount: 900, payee: "Ωmega & Söhne" } };
const forbidden = (): never => assert.fail("entered");

test("a permitted act is allowed, and its event names the decision", async () => {
  const agent = await makeAgent();
  const found = await client.decide(agent.id, "read", { resource });
  const event = await asking(client, agent.id, "read", { resource }, (decision) =>
    client.events.record({ agentId: agent.id, actionType: "api_call", decisionId: decision.decisionId }),
  );
  assert.deepEqual([found.decision, found.outcome, found.riskBand, found.approval], [true, "allow", "low", null]);
  assert.ok(event.id);
});

test("an act outside the scope is denied before the block", async () => {
  const agent = await makeAgent();
  const refused = asking(client, agent.id, "delete", { resource }, forbidden);
  await assert.rejects(refused, (error) => error instanceof Denied && error.reasons[0] === "scope_violation" && error.approvalId === undefined);
});

test("an act that a person must approve waits, until the caller's time is over", async () => {
  const agent = await makeAgent();
  const unattended = { ...payment, details: { ...payment.details, payee: "nobody decides" } };
  const asked = await client.decide(agent.id, "pay", unattended);
  const late = asking(client, agent.id, "pay", { ...unattended, waitSeconds: 1.2 }, forbidden);
  assert.deepEqual([asked.decision, asked.outcome], [false, "ask"]);
  await assert.rejects(late, (error) => error instanceof ApprovalTimedOut && error.approvalId === asked.approval?.id);
  assert.equal((await client.waitForApproval(asked.approval?.id ?? "", { waitSeconds: 0 })).status, "pending");
});

test("a signal ends the wait", async () => {
  const agent = await makeAgent();
  const signal = AbortSignal.timeout(300);
  const waiting = asking(client, agent.id, "pay", { ...payment, details: { payee: "nobody decides" }, signal }, forbidden);
  await assert.rejects(waiting, { name: "TimeoutError" });
});

test("an approved act is done once", { skip: !IS_ATTENDED }, async () => {
  const agent = await makeAgent();
  const decision = await asking(client, agent.id, "pay", { ...payment, waitSeconds: 60 }, (found) => found);
  assert.deepEqual([decision.outcome, decision.reasons[0]?.name], ["allow", "approved"]);
  const { value: used } = await client.approvals.list({ agent_id: agent.id }).next();
  assert.equal(used?.status, "used");
});

test("a denied act is not done, and the person's note is told", { skip: !IS_ATTENDED }, async () => {
  const agent = await makeAgent();
  const act = { ...payment, details: { payee: "stranger" }, waitSeconds: 60 };
  await assert.rejects(asking(client, agent.id, "pay", act, forbidden), (error) => error instanceof Denied && error.message === "the approval is denied: not this payee");
});

test("a busy service is asked again while an approval waits", { skip: !IS_ATTENDED }, async () => {
  const agent = await makeAgent();
  const busy: Fate = { status: 503, headers: { "retry-after": "0" } };
  await using way = await between("passed", "passed", busy, busy, "passed");
  const patient = new Client({ baseUrl: way.baseUrl, retries: { tries: 2, firstWaitSeconds: 0.01 } });
  const act = { ...payment, details: { held: true }, waitSeconds: 60 };
  const waiting = asking(patient, agent.id, "pay", act, (found) => found);
  await eventually(async () => way.fates.length === 1);
  await client.approvals.open({ agent_id: agent.id, action: "pay", details: { payee: "go on" } });
  assert.ok((await waiting).decision);
});

test("what can't be asked is an error, and a failing block is its own", async () => {
  const agent = await makeAgent();
  await using away = await between({ status: 503, headers: { "retry-after": "0" } });
  const refused = new Client({ baseUrl: away.baseUrl });
  await assert.rejects(asking(refused, agent.id, "read", { resource }, forbidden), Unavailable);
  await assert.rejects(client.waitForApproval(agent.id), NotFound);
  await assert.rejects(asking(client, agent.id, "read", { resource }, () => Promise.reject(new RangeError("own"))), RangeError);
});
