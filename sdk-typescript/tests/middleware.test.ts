import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { type AgentIdentity, type ExpressRequest, Gate, type GateOptions, expressGate, fetchGate } from "agentid/middleware";
import express from "express";
import { API_KEY, type Agent, BASE_URL, type Fate, GATEWAY_KEY, between, client, makeAgent, makeProver } from "./support.js";

type Body = { agent?: AgentIdentity | null; seen?: readonly string[]; sent?: string };
type Answer = { status: number; headers: Headers; body: Body };
type Ask = (gate: Gate, path: string, headers?: Record<string, string>, body?: string) => Promise<Answer>;

const FORGED = { "X-Service-Agent-Id": "forged", X_Service_Agent_Id: "forged", "X-Service-Scope": "all" };
const AWAY = { error: "The authorization service does not answer" };
const isService = (name: string): boolean => name.toLowerCase().includes("service");

const requestOf = (headers: Record<string, string>, body?: string): RequestInit =>
  body === undefined ? { headers } : { method: "POST", headers, body };
const read = async (answer: Response): Promise<Answer> =>
  ({ status: answer.status, headers: answer.headers, body: (await answer.json()) as Body });

const byExpress: Ask = async (gate, path, headers = {}, body) => {
  const app = express();
  app.use(expressGate(gate));
  app.use(express.text({ type: "*/*" }));
  app.use((request, response) => {
    const seen = [...Object.keys(request.headers), ...request.rawHeaders, ...Object.keys(request.headersDistinct)].filter(isService);
    response.json({ agent: (request as ExpressRequest).agent, seen, sent: request.body });
  });
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    return await read(await fetch(`http://127.0.0.1:${port}${path}`, requestOf(headers, body)));
  } finally {
    server.close();
    server.closeAllConnections();
  }
};

const byFetch: Ask = async (gate, path, headers = {}, body) => {
  const handler = fetchGate(gate, async (request, agent) =>
    Response.json({ agent, seen: [...request.headers.keys()].filter(isService), sent: await request.text() }),
  );
  return read(await handler(new Request(`http://api.test${path}`, requestOf(headers, body))));
};

function gateOf(options: GateOptions & { readonly baseUrl?: string; readonly key?: string } = {}): Gate {
  const { baseUrl = BASE_URL, key = GATEWAY_KEY, ...more } = options;
  return new Gate(baseUrl, key, { action: "read", timeoutSeconds: 10, ...more });
}

for (const [name, ask] of [["Express", byExpress], ["Fetch", byFetch]] as const) {
  const serial = (agent: Agent): Record<string, string> => ({ "X-Service-Cert-Serial": agent.serial });

  test(`${name}: an agent with the action in scope passes, with its body, and forged headers are gone`, async () => {
    const agent = await makeAgent();
    const found = await ask(gateOf(), "/orders?a=%20b", { ...serial(agent), ...FORGED }, "the body");
    assert.equal(found.status, 200);
    assert.deepEqual([found.body.agent?.agentId, found.body.agent?.action, found.body.agent?.certSerial], [agent.id, "read", agent.serial]);
    assert.deepEqual([found.body.seen, found.body.sent], [[], "the body"]);
  });

  test(`${name}: an action out of scope is 403, no credential 401, an unknown one 401`, async () => {
    const agent = await makeAgent();
    const gate = gateOf({ action: (inbound) => inbound.path.slice(1) });
    const [refused, open] = [await ask(gate, "/write", serial(agent)), await ask(gate, "/read", serial(agent))];
    const none = await ask(gate, "/read", FORGED);
    const odd = await ask(gate, "/read", { Authorization: "Bearer \u00e9", ...serial(agent) });
    assert.deepEqual([refused.status, refused.body], [403, { error: "Scope violation" }]);
    assert.deepEqual([open.status, none.status, odd.status], [200, 401, 401]);
    assert.match(none.headers.get("www-authenticate") ?? "", /DPoP/);
    assert.match(odd.headers.get("www-authenticate") ?? "", /invalid_token/);
  });

  test(`${name}: the holder of a bound token proves its key, for the public address`, async () => {
    const agent = await makeAgent();
    const [key, thief] = [await makeProver(), await makeProver()];
    const chain = [{ sub: "tester", type: "agent" as const }];
    const { token } = await client.delegation.issue(agent.id, { chain, scope: "read", dpop_jkt: key.thumbprint });
    const present = async (holder: typeof key): Promise<number> => {
      const proof = await holder.proof("GET", "https://api.example.com/orders", token);
      return (await ask(gateOf({ publicUrl: "https://api.example.com/" }), "/orders", { Authorization: `DPoP ${token}`, DPoP: proof })).status;
    };
    assert.deepEqual([await present(key), await present(thief)], [200, 401]);
  });

  test(`${name}: an excluded path is open and stripped all the same`, async () => {
    const gate = gateOf({ excluded: ["/health", "/public/info"] });
    const found = await ask(gate, "/health", FORGED);
    assert.deepEqual([found.status, found.body.agent, found.body.seen], [200, null, []]);
    // Express routes by the path as it is sent: `/:name` would take the second one.
    for (const other of ["/health/", "/public%2Finfo"]) assert.equal((await ask(gate, other)).status, 401);
  });

  test(`${name}: without a decision it is 503`, async () => {
    const agent = await makeAgent();
    const fates: Fate[] = ["silent", "lost", { status: 500 }, { status: 302, headers: { location: "/" } }, { status: 200, body: "<h1>" }, { status: 401 }];
    for (const fate of fates) {
      await using way = await between(fate);
      const found = await ask(gateOf({ baseUrl: way.baseUrl, timeoutSeconds: 1 }), "/orders", serial(agent));
      assert.deepEqual([found.status, found.body, found.headers.get("retry-after")], [503, AWAY, "1"]);
    }
    for (const key of ["service_live_wrong", API_KEY]) {
      const found = await ask(gateOf({ key, route: "none" }), "/orders", serial(agent));
      assert.deepEqual([found.status, found.body], [503, AWAY]);
    }
  });
}
