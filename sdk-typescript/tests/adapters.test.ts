import assert from "node:assert/strict";
import { test } from "node:test";
import { type Reports, reportingHandler, reportingSteps } from "agentid/adapters";
import { tool as langchainTool } from "@langchain/core/tools";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { eventually } from "./support.js";

const schema = { type: "object", properties: { item: { type: "string" } } } as const;
const broken = (): string => {
  throw new RangeError("secret");
};

function noting() {
  const told: [actionType: string, details: Readonly<Record<string, unknown>>, sessionId: string | undefined][] = [];
  const report: Reports["report"] = (kind, details, options) => told.push([kind, details, options?.sessionId]) > 0;
  return { reporter: { report }, told };
}

test("LangChain's tools and models are reported when they end, without inputs and outputs", async () => {
  const { reporter, told } = noting();
  const callbacks = [reportingHandler(reporter, { tools: { place_order: "transaction_initiated" } })];
  const order = langchainTool(() => "secret", { name: "place_order", description: "orders", schema });
  await order.invoke({ item: "secret" }, { callbacks, metadata: { thread_id: "t1" } });
  await assert.rejects(langchainTool(broken, { name: "broken", description: "fails", schema }).invoke({}, { callbacks }));
  await new FakeListChatModel({ responses: ["secret"] }).invoke("secret", { callbacks });
  await eventually(async () => told.length === 3); // LangChain calls back behind the run

  assert.deepEqual(told.map(([kind, { tool: name, outcome, error }, session]) => [kind, name, outcome, error, session]), [
    ["transaction_initiated", "place_order", "succeeded", undefined, "t1"],
    ["api_call", "broken", "failed", "RangeError", undefined],
    ["api_call", undefined, "succeeded", undefined, undefined],
  ]);
  assert.ok(told.every(([, details]) => typeof details["duration_ms"] === "number"));
  assert.ok(!JSON.stringify(told).includes("secret"));
});

test("the AI SDK's steps are reported with the tools that ran, without inputs and outputs", async () => {
  const { reporter, told } = noting();
  const inputTokens = { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined };
  const usage = { inputTokens, outputTokens: { total: 5, text: 5, reasoning: undefined } };
  const call = (toolName: string) => ({ type: "tool-call" as const, toolCallId: toolName, toolName, input: '{"item": "secret"}' });
  const [calls, end] = [{ unified: "tool-calls", raw: undefined }, { unified: "stop", raw: undefined }] as const;
  const doGenerate = [
    { content: [call("place_order"), call("broken")], finishReason: calls, usage, warnings: [] },
    { content: [{ type: "text" as const, text: "secret" }], finishReason: end, usage, warnings: [] },
  ];
  const inputSchema = jsonSchema<{ item: string }>(schema);
  const tools = { place_order: tool({ inputSchema, execute: () => "secret" }), broken: tool({ inputSchema, execute: broken }) };
  await generateText({
    ...{ model: new MockLanguageModelV3({ modelId: "stub", doGenerate }), prompt: "secret", tools, stopWhen: stepCountIs(3) },
    onStepFinish: reportingSteps(reporter, { tools: { place_order: "transaction_initiated" }, sessionId: "s1" }),
  });

  const ofModel = ["api_call", { model: "stub", outcome: "succeeded", input_tokens: 3, output_tokens: 5 }, "s1"];
  assert.deepEqual(told, [
    ofModel,
    ["transaction_initiated", { tool: "place_order", outcome: "succeeded" }, "s1"],
    ["api_call", { tool: "broken", outcome: "failed", error: "RangeError" }, "s1"],
    ofModel,
  ]);
});
