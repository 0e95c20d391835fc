/** The service of the environment's variables, an agent of it, and a server that misbehaves as a test says. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type IncomingHttpHeaders, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, NotValid, type Reason } from "agentid";
import { SignJWT, calculateJwkThumbprint, exportJWK, generateKeyPair } from "jose";
function variable(name: string): string {
  const found = process.env[name];
  assert.ok(found, `set ${name}: the tests run against a service`);
  return found;
}

export const BASE_URL = variable("AGENTID_BASE_URL");
export const API_KEY = variable("AGENTID_API_KEY");
export const GATEWAY_KEY = variable("AGENTID_GATEWAY_KEY");
export const AUDIENCE = "https://api.example.com";
/** Whether someone meanwhile decides on the approvals of these tests, and does the work that waits for a worker. */
export const IS_ATTENDED = process.env["AGENTID_ATTENDED"] === "1";
/** A client without waits that a test would notice. */
export const client = new Client({ retries: { firstWaitSeconds: 0.01 } });
export type Agent = Awaited<ReturnType<typeof client.agents.get>> & { readonly serial: string };

/** An agent that may read and pay; a person is asked before it pays. */
export async function makeAgent(): Promise<Agent> {
  const metadata = { permitted_actions: ["read", "pay"] };
  const agent = await client.agents.register({ name: "tester", model_hash: "sha256:9f86d081", metadata });
  const { serial_number: serial } = await client.agents.certify(agent.id);
  await client.approvalPolicies.set(`agent:${agent.id}`, { ask_from: "never", always_ask: ["pay"] });
  await sleep(1000); // until no worker goes by the policies that it read before
  return { ...agent, serial };
}

/** An agent's own key, which proves that it is held (DPoP, RFC 9449). */
export async function makeProver() {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const jwk = await exportJWK(publicKey);
  const proof = (htm: string, htu: string, accessToken: string): Promise<string> => {
    const ath = createHash("sha256").update(accessToken).digest("base64url");
    const claims = new SignJWT({ jti: crypto.randomUUID(), htm, htu: htu.split("?")[0], ath }).setIssuedAt();
    return claims.setProtectedHeader({ typ: "dpop+jwt", alg: "ES256", jwk }).sign(privateKey);
  };
  return { thumbprint: await calculateJwkThumbprint(jwk), proof };
}

export async function eventually(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries += 1) {
    assert.ok(tries < 300, "it never came");
    await sleep(200);
  }
}

export async function reasonOf(refused: Promise<unknown>): Promise<Reason> {
  const error: unknown = await refused.then(() => assert.fail("taken"), (found: unknown) => found);
  assert.ok(error instanceof NotValid, String(error));
  return error.reason;
}

/** passed: on to the service; lost: so too, but its answer is cut off; silent: no answer; else an answer of our own. */
export type Fate = "passed" | "lost" | "silent" | { status: number; body?: string; headers?: Record<string, string> };

/** A server before the service; each request uses up one fate, the last stays. */
export async function between(...fates: Fate[]) {
  const seen: IncomingHttpHeaders[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    seen.push(request.headers);
    const fate = (fates.length > 1 ? fates.shift() : fates[0]) ?? "passed";
    if (fate === "silent") return;
    if (typeof fate === "object") {
      response.writeHead(fate.status, fate.headers).end(fate.body ?? '{"error": "no"}');
      return;
    }
    const { host: _, connection: __, "content-length": ___, ...kept } = request.headers;
    const { method = "GET", url = "" } = request;
    const headers = new Headers(Object.entries(kept).map(([name, value]) => [name, String(value)] as [string, string]));
    const found = await fetch(BASE_URL + url, { method, headers, ...(method === "GET" ? {} : { body }) });
    const answer = await found.text();
    if (fate === "lost") response.destroy();
    else response.writeHead(found.status, { "content-type": found.headers.get("content-type") ?? "" }).end(answer);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => void (server.close(), server.closeAllConnections());
  return { baseUrl, seen, fates, [Symbol.asyncDispose]: close };
}
