import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ConfigurationError } from "agentid";
import { AgentKey, signedFetch } from "agentid/signing";
import { signatureHeaders, verify } from "web-bot-auth";
import { signerFromJWK, verifierFromJWK } from "web-bot-auth/crypto";
import { BASE_URL, GATEWAY_KEY, client, makeAgent } from "./support.js";

const DOMAIN = "https://agents.example.com";
const URL_ = "https://api.example.com/prices?symbol=BTC";

async function registered(): Promise<{ key: AgentKey; agent: Awaited<ReturnType<typeof makeAgent>> }> {
  const [agent, key] = [await makeAgent(), await AgentKey.generate()];
  const proof = await key.proof("POST", `${await publicAddress()}/v1/agents/${agent.id}/keys`);
  const { thumbprint } = await client.agentKeys.register(agent.id, { jwk: key.jwk }, { proof });
  assert.equal(thumbprint, key.thumbprint);
  return { key, agent };
}

/** The address for which proofs are made, whatever name the service is called by. */
async function publicAddress(): Promise<string> {
  return (await client.oauth.metadata()).token_endpoint.replace(/\/oauth\/token$/, "");
}

/** What the gateway decides about a GET of `URL_` with these headers: the status, and the agent or the reason. */
async function decided(headers: Record<string, string>, url = URL_): Promise<[number, string | null]> {
  const { host, pathname, search } = new URL(url);
  const forwarded = { "X-Forwarded-Method": "GET", "X-Forwarded-Proto": "https", "X-Forwarded-Host": host, "X-Forwarded-Uri": pathname + search };
  const own = { "X-Service-Gateway-Key": GATEWAY_KEY, "X-Service-Action": "read" };
  const answer = await fetch(`${BASE_URL}/v1/gateway/authorize`, { headers: { ...own, ...forwarded, ...headers } });
  return [answer.status, answer.headers.get("x-service-agent-id") ?? answer.headers.get("x-service-gateway-reason")];
}

test("npm web-bot-auth verifies our signatures, and no others", async () => {
  const key = await AgentKey.generate();
  const [ours, others] = [await verifierFromJWK(key.jwk), await verifierFromJWK((await AgentKey.generate()).jwk)];
  for (const body of [undefined, "{}"]) {
    const headers = await key.headers("GET", URL_, { signatureAgent: DOMAIN, legacy: true, body });
    const request = { method: "GET", url: URL_, headers };
    await verify(request, ours);
    await assert.rejects(verify(request, others), /invalid signature/);
    await assert.rejects(verify({ ...request, url: "https://api.example.com/other?symbol=BTC" }, ours), /invalid signature/);
    await assert.rejects(verify({ ...request, method: "POST" }, ours), /invalid signature/);
  }
});

test("the gateway verifies the signatures of npm web-bot-auth", async () => {
  const { key, agent } = await registered();
  const signer = await signerFromJWK((await key.exported()) as JsonWebKey);
  const stated = { "Signature-Agent": `"${DOMAIN}"` };
  const sign = async (components: string[], created = new Date()) => ({
    ...stated,
    ...(await signatureHeaders({ method: "GET", url: URL_, headers: stated }, signer, {
      created, expires: new Date(created.getTime() + 60_000), components,
    })),
  });
  const components = ["@method", "@authority", "@path", "@query", "signature-agent"];
  const headers = await sign(components);

  assert.deepEqual(await decided(headers), [200, agent.id]);
  assert.deepEqual(await decided(headers), [401, "signature_used"]);
  assert.deepEqual(await decided(await sign(components), "https://api.example.com/other"), [401, "invalid_signature"]);
  assert.deepEqual(await decided(await sign(["@authority", "signature-agent"])), [401, "signature_components"]);
  assert.deepEqual(await decided(await sign(components, new Date(Date.now() - 120_000))), [401, "signature_times"]);
});

test("the gateway takes our signatures until the key or the agent is stopped", async () => {
  const { key, agent } = await registered();
  const sign = (legacy = false) => key.headers("GET", URL_, { signatureAgent: DOMAIN, legacy });
  const unknown = await (await AgentKey.generate()).headers("GET", URL_, { signatureAgent: DOMAIN });

  assert.deepEqual(await decided(await sign()), [200, agent.id]);
  assert.deepEqual(await decided(await sign(true)), [200, agent.id]);
  assert.deepEqual(await decided(unknown), [401, "signature_key_unknown"]);
  await client.agents.suspend(agent.id, { reason: "under review" });
  assert.deepEqual(await decided(await sign()), [403, "agent_suspended"]);
  const [listed] = await client.agentKeys.list(agent.id);
  await client.agentKeys.revoke(agent.id, listed?.id ?? "", { reason: "lost" });
  assert.deepEqual(await decided(await sign()), [401, "signature_key_unknown"]);
});

test("an agent gets a token by its key", async () => {
  const { key, agent } = await registered();
  const { token_endpoint: endpoint } = await client.oauth.metadata();
  const body = new URLSearchParams({
    grant_type: "client_credentials", scope: "read", client_assertion: await key.clientAssertion(agent.did, endpoint),
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
  });
  const answer = await fetch(`${BASE_URL}/oauth/token`, { method: "POST", body });
  assert.equal(answer.status, 200);
});

test("a private key is exported and read again, one of another kind is not", async () => {
  const key = await AgentKey.generate();
  assert.equal((await AgentKey.fromJwk(await key.exported())).thumbprint, key.thumbprint);
  await assert.rejects(AgentKey.fromJwk(key.jwk), ConfigurationError);
});

test("signedFetch signs again with the nonce that it is asked for", async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(String(request.headers["signature-input"]));
    response.statusCode = seen.length === 1 ? 401 : 200;
    response.setHeader("Accept-Signature", 'sig1=("@method");tag="web-bot-auth";nonce="n-1"').end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const send = signedFetch(await AgentKey.generate(), DOMAIN);
    const { port } = server.address() as AddressInfo;
    const answer = await send(`http://127.0.0.1:${port}/a`, { method: "POST", body: "{}" });
    assert.equal(answer.status, 200);
    assert.match(seen[1] ?? "", /"content-digest".*;nonce="n-1"/);
  } finally {
    server.close();
  }
});
