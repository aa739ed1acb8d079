// Runs turns through acpx's library, one for each line of standard input, and
// prints how long each took, in milliseconds: to the first text and to its end.
//
// The clock is inside, as it is for Ostler's library.
import { createInterface } from "node:readline";

const [module, stateDir, cwd, ...agent] = process.argv.slice(2);
const { createAcpRuntime, createAgentRegistry, createRuntimeStore } = await import(module);
const runtime = createAcpRuntime({
  cwd,
  sessionStore: createRuntimeStore({ stateDir }),
  agentRegistry: createAgentRegistry({ overrides: { scripted: agent } }),
  permissionMode: "deny-all",
});
const handle = await runtime.ensureSession({
  sessionKey: "bench",
  agent: "scripted",
  mode: "persistent",
  cwd,
});

let turns = 0;
for await (const text of createInterface({ input: process.stdin })) {
  const started = performance.now();
  let first;
  const turn = runtime.startTurn({ handle, text, mode: "prompt", requestId: `turn-${++turns}` });
  for await (const event of turn.events) {
    if (event.type === "text_delta") first ??= performance.now() - started;
  }
  const { status } = await turn.result;
  if (status !== "completed") throw new Error(`a turn was ${status}`);
  const total = performance.now() - started;
  console.log(`${first ?? total} ${total}`);
}
await runtime.shutdown();
