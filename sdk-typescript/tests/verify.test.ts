import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import { ConfigurationError } from "agentid";
import { type TokenRules, canonical, checkCertificate, fetchedKeys, givenKeys, verifyApprovalReceipt, verifyHaltReceipt, verifyToken, verifyWebhook } from "agentid/verify";
import * as credentials from "@transmute/verifiable-credentials";
import { SignJWT, exportJWK, generateKeyPair } from "jose";
import { AUDIENCE, BASE_URL, IS_ATTENDED, client, eventually, makeAgent, makeProver, reasonOf } from "./support.js";

const CHAIN: { sub: string; type: "human" | "agent" }[] = [{ sub: "alice@example.com", type: "human" }, { sub: "tester", type: "agent" }];
const issuer = (await client.oauth.metadata()).issuer;
const keys = givenKeys(await client.delegation.jwks());
const rules: TokenRules = { keys, issuer, audience: AUDIENCE };
const later = (seconds: number): Date => new Date(Date.now() + seconds * 1000);

test("a delegation token is verified offline, by given keys and by fetched ones", async () => {
  const agent = await makeAgent();
  const { token } = await client.delegation.issue(agent.id, { chain: CHAIN, scope: "read pay", audience: AUDIENCE });
  const found = await verifyToken(token, rules);
  const fetched = await verifyToken(token, { ...rules, keys: fetchedKeys(BASE_URL) });
  assert.deepEqual(fetched, found);
  assert.deepEqual([found.agentId, found.principal, found.certificateSerial], [agent.id, "tester", agent.serial]);
  assert.deepEqual(found.chain, [{ sub: "alice@example.com", kind: "human" }, { sub: "tester", kind: "agent" }]);
  assert.deepEqual([...found.scope].sort(), ["pay", "read"]);
});

test("a token that does not count says which check failed first", async () => {
  const agent = await makeAgent();
  const { token } = await client.delegation.issue(agent.id, { chain: CHAIN, audience: AUDIENCE, ttl_seconds: 300 });
  const [header = "", payload = "", signature = ""] = token.split(".");
  const refusal = (text: string, more: Partial<TokenRules> = {}, now = new Date()): Promise<string> =>
    reasonOf(verifyToken(text, { ...rules, ...more, now }));
  const last = payload.at(-1) === "A" ? "Q" : "A";

  assert.equal(await refusal("nonsense"), "malformed");
  assert.equal(await refusal(`${header}.${payload}.${signature.slice(0, -4)}AAAA`), "invalid_signature");
  assert.equal(await refusal(`${header}.${payload.slice(0, -1)}${last}.${signature}`).then((each) => ["malformed", "invalid_signature"].includes(each)), true);
  assert.equal(await refusal(token, { issuer: "https://other.example" }), "invalid_issuer");
  assert.equal(await refusal(token, { environment: "test" }), "wrong_environment");
  assert.equal(await refusal(token, { audience: "https://other.example" }), "wrong_audience");
  assert.equal(await refusal(token, {}, later(-600)), "not_yet_valid");
  assert.equal(await refusal(token, {}, later(600)), "expired");
  assert.equal(await reasonOf(verifyToken(token, { ...rules, keys: givenKeys({ keys: [] }) })), "unknown_key");
});

test("a forged header is refused", async () => {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid: "own", alg: "ES256" };
  const own = givenKeys({ keys: [jwk] });
  const two = givenKeys({ keys: [jwk, { ...jwk, kid: "other" }] });
  const forged = (header: object): Promise<string> =>
    new SignJWT({ iss: issuer, env: "live" }).setProtectedHeader({ alg: "ES256", typ: "delegation+jwt", kid: "own", ...header }).sign(privateKey);
  const unsigned = `${Buffer.from('{"alg":"none","typ":"delegation+jwt","kid":"own"}').toString("base64url")}.e30.AA`;
  assert.equal(await reasonOf(verifyToken(await forged({ jwk }), rules)), "unknown_key");
  assert.equal(await reasonOf(verifyToken(await forged({ kid: undefined }), { ...rules, keys: two })), "unknown_key");
  assert.throws(() => fetchedKeys("http://id.example.com"), ConfigurationError);
  assert.equal(await reasonOf(verifyToken(await forged({ typ: "approval+jwt" }), { ...rules, keys: own })), "malformed");
  assert.equal(await reasonOf(verifyToken(await forged({}), { ...rules, keys: own })), "malformed");
  assert.equal(await reasonOf(verifyToken(unsigned, { ...rules, keys: own })), "unsupported_algorithm");
});

test("a bound token counts only with a proof by its key", async () => {
  const agent = await makeAgent();
  const [key, thief] = [await makeProver(), await makeProver()];
  const grant = { chain: CHAIN, audience: AUDIENCE, dpop_jkt: key.thumbprint };
  const { token } = await client.delegation.issue(agent.id, grant);
  const url = `${AUDIENCE}/prices`;
  const shown = async (holder = key, accessToken = token, at = `${url}?page=1`): Promise<TokenRules> =>
    ({ ...rules, proof: { text: await holder.proof("GET", at, accessToken), method: "GET", url } });
  const good = await shown();

  assert.equal((await verifyToken(token, good)).boundTo, key.thumbprint);
  assert.equal(await reasonOf(verifyToken(token, rules)), "proof_required");
  assert.equal(await reasonOf(verifyToken(token, await shown(thief))), "wrong_key");
  assert.equal(await reasonOf(verifyToken(token, await shown(key, "other"))), "wrong_token");
  assert.equal(await reasonOf(verifyToken(token, await shown(key, token, `${url}/1`))), "wrong_request");
  assert.equal(await reasonOf(verifyToken(token, { ...good, now: later(120) })), "expired");
  assert.ok(good.proof);
  assert.equal(await reasonOf(verifyToken(token, { ...good, proof: { ...good.proof, isNew: () => false } })), "expired");
});

test("a certificate's status is that of now, or of a moment", async () => {
  const agent = await makeAgent();
  const before = new Date();
  assert.equal((await checkCertificate(client, agent.serial)).agent_id, agent.id);
  await client.agents.suspend(agent.id, { reason: "test" });
  assert.equal(await reasonOf(checkCertificate(client, agent.serial)), "revoked");
  assert.equal(await reasonOf(checkCertificate(client, agent.serial, later(-86_400))), "not_yet_valid");
  assert.equal((await checkCertificate(client, agent.serial, before)).status, "revoked");
});

test("an approval's receipt is for one act of one agent", { skip: !IS_ATTENDED }, async () => {
  const agent = await makeAgent();
  const details = { amount: 25_000.5, payee: "Ωmega & Söhne" };
  const { id } = await client.approvals.open({ agent_id: agent.id, action: "pay", details });
  const { receipt } = await client.waitForApproval(id, { waitSeconds: 60 });
  const act = { agentId: agent.id, action: "pay", details };
  assert.ok(receipt);
  const refusal = (more: object, now = new Date()): Promise<string> =>
    reasonOf(verifyApprovalReceipt(receipt, { ...act, ...more }, { keys, issuer, now }));

  assert.equal((await verifyApprovalReceipt(receipt, act, { keys, issuer })).approvalId, id);
  assert.equal(await refusal({ agentId: crypto.randomUUID() }), "wrong_agent");
  assert.equal(await refusal({ details: { ...details, amount: 1 } }), "wrong_action");
  assert.equal(await refusal({}, later(1e5)), "expired");
  assert.equal(await reasonOf(verifyToken(receipt, rules)), "malformed");
});

test("a stop's receipt is for its lines", async () => {
  const agents = [await makeAgent(), await makeAgent(), await makeAgent()];
  const { id } = await client.stops.begin({ match: { agent_ids: agents.map((each) => each.id) }, reason: "test" });
  assert.ok(id);
  await eventually(async () => (await client.stops.get(id)).state !== "running");
  const { receipt, lines } = await client.stops.receipt(id);
  assert.equal((await verifyHaltReceipt(receipt, lines, { keys, issuer }))["count"], 3);
  assert.equal(await reasonOf(verifyHaltReceipt(receipt, lines.slice(1), { keys, issuer })), "not_as_sealed");
  assert.equal(await reasonOf(verifyHaltReceipt(receipt, lines, { keys, issuer, environment: "test" })), "wrong_environment");
});

test("a webhook counts by its signature and its time", async () => {
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  const id = crypto.randomUUID();
  const body = JSON.stringify({ id, event: "agent.created", created_at: new Date().toISOString(), data: { name: "Ωmega" } });
  const sentAt = String(Math.floor(Date.now() / 1000));
  const standard = createHmac("sha256", Buffer.from(secret.slice(6), "base64")).update(`${id}.${sentAt}.${body}`).digest("base64");
  const headers = {
    "webhook-id": id,
    "webhook-timestamp": sentAt,
    "webhook-signature": `v1,AAAA v1,${standard}`,
  };
  const refusal = (more: object, text = body, now = new Date()): Promise<string> =>
    reasonOf(verifyWebhook(text, { ...headers, ...more }, { secret, now }));
  const found = await verifyWebhook(Buffer.from(body), new Headers(headers), { secret });

  assert.deepEqual([found.id, found.event, found.data], [id, "agent.created", { name: "Ωmega" }]);
  assert.equal(await refusal({}, `${body} `), "invalid_signature");
  assert.equal(await refusal({ "webhook-id": crypto.randomUUID() }), "invalid_signature");
  assert.equal(await refusal({ "webhook-signature": "" }), "invalid_signature");
  assert.equal(await refusal({}, body, later(301)), "expired");
});

test("a delivery that the service signed is taken", { skip: !process.env["AGENTID_DELIVERY"] }, async () => {
  const delivery = JSON.parse(process.env["AGENTID_DELIVERY"] ?? "") as { body: string; headers: Record<string, string>; secret: string };
  assert.equal((await verifyWebhook(delivery.body, delivery.headers, delivery)).event, "webhook.test");
});

test("canonical JSON is that of RFC 8785", async () => {
  const text = (value: unknown): string => new TextDecoder().decode(canonical(value));
  const fail = async (value: unknown): Promise<string> => reasonOf(Promise.resolve().then(() => canonical(value)));
  const found = text({ "\u{1f600}": 1e21, "\ufb33": [true, null, "\u20ac\u000f"], a: 333333333.33333329 });
  assert.equal(found, '{"a":333333333.3333333,"\u{1f600}":1e+21,"\ufb33":[true,null,"\u20ac\\u000f"]}');
  assert.equal(await fail(Number.NaN), "malformed");
  assert.equal(await fail("\ud800"), "malformed");
  assert.equal(await fail({ a: 1n }), "malformed");
});

test("a library of Verifiable Credentials verifies an agent's, and refuses a forged one", async () => {
  const agent = await makeAgent();
  const { credential } = await client.agents.credential(agent.id);
  const { kid } = JSON.parse(Buffer.from(credential.split(".")[0] ?? "", "base64url").toString());
  const key = (await client.delegation.jwks()).keys.find((one) => one.kid === kid);
  const given = { type: "application/jwk+json", content: new TextEncoder().encode(JSON.stringify(key)) };
  // The name that the library's draft has for vc+jwt.
  const type = "application/vc-ld+jwt";
  const validator = credentials.validator({ resolver: { resolve: async () => given } } as never);
  const validate = (text: string) => validator.validate({ type, content: new TextEncoder().encode(text) });

  const found = await validate(credential);
  assert.equal(found.verified, true);
  assert.ok(JSON.stringify(found.content.credentialSubject).includes(`"certificate_serial":"${agent.serial}"`));
  await assert.rejects(validate(`${credential.slice(0, -8)}AAAAAAAA`), /signature verification failed/);
});
