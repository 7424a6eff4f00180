// The module "sallyport" for programs: calls of tools, and helpers. The guest's
// bootstrap implements them; this file declares their types.

/** Binary content of a result. */
export interface Blob {
  readonly data: Uint8Array;
  readonly mime: string;
  readonly uri: string;
  readonly name: string;
}

/** A call that failed: `code`, `tool` ("upstream.name"), `hint` for a correct call; `retryable`: the same call may be retried. */
export interface ToolError extends Error {
  readonly code: string;
  /** The older name of code. */
  readonly kind: string;
  readonly upstream: string;
  readonly tool: string;
  readonly hint: string;
  readonly retryable: boolean;
}

/** The progress of a call: `progress` of `total`, if that is known. */
export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message: string;
  readonly tool: string;
}

/** How many functions `parallel` runs at once (16), and whether an error takes its result's place (false). */
export interface ParallelOptions {
  limit?: number;
  errors?: boolean;
}

/** Options of a search; `detail` is "names", "summary", "signature" or "full". */
export interface SearchOptions {
  detail?: string;
  upstream?: string;
  limit?: number;
}

/** The content of a skill: its code, or a successful execution. */
export interface SkillOptions {
  code?: string;
  description?: string;
  language?: "python" | "typescript";
  params?: object;
  from_execution?: string;
  tests?: string;
  scope?: "private" | "shared";
  /** The groups that see it, [] for everybody. */
  groups?: string[];
}

interface Runtime {
  search_tools(query: string, options?: SearchOptions): Promise<string>;
  describe(tool: string | ((...args: any[]) => any)): Promise<string>;
  save_skill(name: string, options?: SkillOptions): Promise<string>;
  load_skill(name: string, version?: number): Promise<string>;
  list_skills(query?: string): Promise<string>;
  shape_of(value: unknown): string;
  emit(thing: unknown, options?: { name?: string; mime?: string }): Promise<void>;
  save(name: string, value: unknown): void;
  load(name: string): any;
  progress(listener: (p: Progress) => unknown, body: () => any): any;
  call(tool: string, args?: object, spec?: string): Promise<any>;
  parallel(...thunks: any[]): Promise<any[]>;
  iterate(wrapper: any, args?: object, options?: object): any;
  ToolError: new (message: string, code?: string, tool?: string, hint?: string, retryable?: boolean) => ToolError;
  Blob: new (data: Uint8Array, mime?: string, uri?: string, name?: string) => Blob;
}

const runtime: Runtime = (globalThis as any)[Symbol.for("sallyport")];

/** Calls the tool with id "upstream.name". The wrappers under "servers" use it, and pass the tool's spec. */
export function call<T = any>(tool: string, args: object = {}, spec?: string): Promise<T> {
  return runtime.call(tool, args, spec);
}

/** Finds tools by words. Returns text to print. */
export function search_tools(query: string, options?: SearchOptions): Promise<string> {
  return runtime.search_tools(query, options);
}

/** Describes a tool: await describe(create_issue) or await describe("github.create_issue"). Returns text to print. */
export function describe(tool: string | ((...args: any[]) => any)): Promise<string> {
  return runtime.describe(tool);
}

/** Saves code as a skill, for this and later programs: import { fn } from "skills/NAME". */
export function save_skill(name: string, options?: SkillOptions): Promise<string> {
  return runtime.save_skill(name, options);
}

/** Returns the text of a skill: what it is for, how to import it, its code. */
export function load_skill(name: string, version?: number): Promise<string> {
  return runtime.load_skill(name, version);
}

/** Lists the skills, or those that match the query, one per line. */
export function list_skills(query?: string): Promise<string> {
  return runtime.list_skills(query);
}

type Task = (() => unknown) | PromiseLike<unknown>;
type Results<F extends readonly Task[]> = { -readonly [K in keyof F]: F[K] extends () => infer R ? Awaited<R> : Awaited<F[K]> };

/**
 * Runs functions at once, at most `limit` of them, and returns their results in order:
 * await parallel(() => a(1), () => b(2)) or await parallel(xs.map((x) => () => f(x)), { limit: 4 }).
 * After an error it starts no further function, waits for the running ones, and throws the error, of several the
 * first in order. With errors: true it runs all, and an error takes the place of its result.
 */
export function parallel<T>(functions: Iterable<(() => T | PromiseLike<T>) | PromiseLike<T>>, options: ParallelOptions & { errors: true }): Promise<(T | Error)[]>;
export function parallel<T>(functions: Iterable<(() => T | PromiseLike<T>) | PromiseLike<T>>, options?: ParallelOptions): Promise<T[]>;
export function parallel<F extends readonly Task[]>(...functions: F): Promise<Results<F>>;
export function parallel<F extends readonly Task[]>(...functions: [...F, ParallelOptions]): Promise<Results<F>>;
export function parallel(...given: any[]): Promise<any> {
  return runtime.parallel(...given);
}

/** Returns the type of a value as text, without any value in it: {id: number, tags: string[], note?: string} */
export function shape_of(value: unknown): string {
  return runtime.shape_of(value);
}

/** Sends something to the client, besides printed output: a Blob, bytes, the path of a file, rows (a list of objects or lists), a text. */
export function emit(thing: unknown, options?: { name?: string; mime?: string }): Promise<void> {
  return runtime.emit(thing, options);
}

/** Stores a value in the workspace for load(name): Uint8Array and Blob unchanged, all others as JSON. */
export function save(name: string, value: unknown): void {
  runtime.save(name, value);
}

/** Returns the value that save(name, value) stored, in either language. */
export function load<T = any>(name: string): T {
  return runtime.load(name);
}

/** Reports how far the calls in body are: await progress((p) => console.log(p.progress, p.total), () => f({ ... })). */
export function progress<T>(listener: (p: Progress) => unknown, body: () => T | Promise<T>): Promise<T> {
  return runtime.progress(listener, body);
}

/** The type of the items on a page of results of type R: the element of the list in it. */
export type Item<R> = 0 extends 1 & R ? any : R extends readonly (infer T)[] ? T : ItemOf<Extract<R, object>>;
type ItemOf<R> = [Lists<R>] extends [never] ? any : Lists<R>;
type Lists<R> = R extends object ? { [K in keyof R]: NonNullable<R[K]> extends readonly (infer T)[] ? T : never }[keyof R] : never;

/** Iterates over the items of all pages: for await (const issue of iterate(list_issues, { owner, repo })). Pages are requested as needed. */
export function iterate<A extends object, R>(wrapper: (args: A) => Promise<R>, args?: A, options?: { max_items?: number }): AsyncIterable<Item<R>> {
  return runtime.iterate(wrapper, args, options);
}

export const ToolError = runtime.ToolError;
export const Blob = runtime.Blob;
