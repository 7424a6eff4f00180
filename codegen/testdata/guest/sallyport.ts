// Stands in for the guest runtime in tests: a call answers with what it was asked.
export async function call<T>(tool: string, args: object, _spec?: string): Promise<T> {
  return JSON.parse(JSON.stringify({ tool, args })) as T;
}
