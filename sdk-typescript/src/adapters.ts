/** Adapters that report what LangChain.js, LangGraph.js and Vercel's AI SDK run; none of these is a dependency.
 * Names, outcomes and durations are reported; prompts, answers, arguments, results and the text of errors never. */
import { membersOf } from "./client/transport.js";
import type { ActionType, EventOptions } from "./reporting/encoding.js";

const MAX_RUNNING = 10_000;
const SESSION_NAMES = ["session_id", "thread_id"]; // LangGraph names its conversations `thread_id`

/** `Reporter`, as far as it is used here. */
export interface Reports {
  report(actionType: ActionType, details: Readonly<Record<string, unknown>>, options?: EventOptions): boolean;
}

/** `tools` names the action type of each tool, `api_call` where it names none. */
export interface AdapterOptions {
  readonly tools?: Readonly<Record<string, ActionType>> | undefined;
}

type Metadata = Record<string, unknown> | undefined;
type Start = (what: unknown, input: unknown, runId: string, parent?: string, tags?: string[], metadata?: Metadata, name?: string) => void;
type ModelStart = (what: unknown, input: unknown, runId: string, parent?: string, extra?: object, tags?: string[], metadata?: Metadata, name?: string) => void;
type End = (output: unknown, runId: string) => void;

/** What LangChain calls, as far as it is used here. */
export type LangChainCallbacks = Readonly<{
  handleToolStart: Start; handleToolEnd: End; handleToolError: End;
  handleRetrieverStart: Start; handleRetrieverEnd: End; handleRetrieverError: End;
  handleLLMStart: ModelStart; handleChatModelStart: ModelStart; handleLLMEnd: End; handleLLMError: End;
}>;

/** Callbacks for `{ callbacks: [reportingHandler(reporter)] }`; each run is reported when it ends. */
export function reportingHandler(reporter: Reports, options: AdapterOptions = {}): LangChainCallbacks {
  const running = new Map<string, (told: object) => void>();
  const begin = (id: string, actionType: ActionType, details: object, metadata: Metadata): void => {
    const [began, occurredAt] = [performance.now(), new Date()];
    const session = SESSION_NAMES.map((name) => metadata?.[name]).find((each) => each !== undefined);
    const sessionId = session === undefined ? undefined : String(session);
    running.set(id, (told) => {
      const duration_ms = Math.round((performance.now() - began) * 1000) / 1000;
      reporter.report(actionType, { ...details, ...told, duration_ms }, { occurredAt, sessionId });
    });
    const [oldest] = running.keys();
    if (running.size > MAX_RUNNING && oldest !== undefined) running.delete(oldest);
  };
  const end = (id: string, told: object): void => {
    running.get(id)?.(told);
    running.delete(id);
  };
  const done: End = (_output, id) => end(id, { outcome: "succeeded" });
  const failed: End = (error, id) => end(id, { outcome: "failed", error: kindOf(error) });
  const model: ModelStart = (llm, _input, id, _parent, _extra, _tags, metadata, name) =>
    begin(id, "api_call", { model: metadata?.["ls_model_name"] ?? nameOf(llm, name) }, metadata);
  return {
    handleToolStart: (what, _input, id, _parent, _tags, metadata, given) => {
      const tool = nameOf(what, given);
      begin(id, options.tools?.[tool] ?? "api_call", { tool }, metadata);
    },
    handleToolEnd: done,
    handleToolError: failed,
    handleRetrieverStart: (what, _query, id, _parent, _tags, metadata, name) =>
      begin(id, "data_access", { retriever: nameOf(what, name) }, metadata),
    handleRetrieverEnd: (found, id) => end(id, { outcome: "succeeded", documents: Array.isArray(found) ? found.length : 0 }),
    handleRetrieverError: failed,
    handleLLMStart: model,
    handleChatModelStart: model,
    handleLLMEnd: done,
    handleLLMError: failed,
  };
}

/** The name of a run, else that of what runs: the last part of its path. */
function nameOf(serialized: unknown, given: string | undefined): string {
  const { name, id } = membersOf(serialized);
  return given || String(name ?? (Array.isArray(id) ? id.at(-1) : "unnamed"));
}

/** The kind of an error, without its text. */
function kindOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

// Vercel's AI SDK, version 5 and later.

/** A step of `generateText` and `streamText`, as far as it is read here. */
export type Step = Readonly<{
  content: readonly Readonly<{ type: string; toolName?: string; error?: unknown }>[];
  response: Readonly<{ modelId: string; timestamp: Date }>;
  finishReason: string;
  usage: Readonly<{ inputTokens?: number | undefined; outputTokens?: number | undefined }>;
}>;

export interface StepOptions extends AdapterOptions {
  readonly sessionId?: string | undefined;
}

/** The callback `onStepFinish`: `generateText({ …, onStepFinish: reportingSteps(reporter) })`. */
export function reportingSteps(reporter: Reports, options: StepOptions = {}): (step: Step) => void {
  const { tools = {}, sessionId } = options;
  return ({ content, response, finishReason, usage }) => {
    const outcome = finishReason === "error" ? "failed" : "succeeded";
    const { inputTokens: input_tokens, outputTokens: output_tokens } = usage;
    const details = { model: response.modelId, outcome, input_tokens, output_tokens };
    reporter.report("api_call", details, { occurredAt: response.timestamp, sessionId });
    for (const { type, toolName: tool = "unnamed", error } of content) {
      if (type === "tool-result") reporter.report(tools[tool] ?? "api_call", { tool, outcome: "succeeded" }, { sessionId });
      if (type !== "tool-error") continue;
      reporter.report(tools[tool] ?? "api_call", { tool, outcome: "failed", error: kindOf(error) }, { sessionId });
    }
  };
}
