package runtime_test

import (
	"os"
	"os/exec"
	"testing"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
)

// drawn looks at what random.mjs puts in the place of node's own, where OpenSSL has a state: it must behave as that does.
const drawn = `
import assert from "node:assert";
import crypto, { randomUUID as early } from "node:crypto";
import { promisify } from "node:util";
const { refresh } = await import(process.argv[1] + "/random.mjs");
const native = [crypto.randomUUID, crypto.randomBytes, Math.random];
refresh();
const { randomUUID, randomInt } = await import("node:crypto");
assert(randomUUID === early && native.every((f) => f !== randomUUID && f !== crypto.randomBytes && f !== Math.random));

const numbers = Array.from({ length: 10000 }, Math.random);
assert(numbers.every((x) => x >= 0 && x < 1) && new Set(numbers).size === 10000);
const mean = numbers.reduce((a, b) => a + b) / 10000;
assert(mean > 0.47 && mean < 0.53, mean);
assert(Math.random.name === "random" && Math.random.length === 0 && !("prototype" in Math.random) && /native code/.test(Math.random));

assert(crypto.randomBytes(16).length === 16 && (await promisify(crypto.randomBytes)(5)).length === 5);
assert.throws(() => crypto.randomBytes("x"), { code: "ERR_INVALID_ARG_TYPE" });
const part = crypto.randomFillSync(Buffer.alloc(40), 8, 24);
assert(part.subarray(0, 8).equals(Buffer.alloc(8)) && part.subarray(32).equals(Buffer.alloc(8)) && !part.subarray(8, 32).equals(Buffer.alloc(24)));
const wide = crypto.randomFillSync(new Uint32Array(8), 2, 4);
assert(wide[0] === 0 && wide[1] === 0 && wide[6] === 0 && wide.subarray(2, 6).some(Boolean));
assert.throws(() => crypto.randomFillSync(Buffer.alloc(4), 9), RangeError);
const later = await promisify(crypto.randomFill)(Buffer.alloc(20), 10);
assert(later.subarray(0, 10).equals(Buffer.alloc(10)) && !later.subarray(10).equals(Buffer.alloc(10)));
assert(new DataView(crypto.randomFillSync(new ArrayBuffer(16))).byteLength === 16);

const seen = new Set(Array.from({ length: 400 }, () => crypto.randomInt(-2, 3)));
assert.deepStrictEqual([...seen].sort((a, b) => a - b), [-2, -1, 0, 1, 2]);
assert((await promisify(randomInt)(5)) < 5 && crypto.randomInt(7) < 7);
assert.throws(() => crypto.randomInt(3, 1), RangeError);
assert.throws(() => crypto.randomInt(1.5), TypeError);

assert.match(randomUUID(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
assert.notStrictEqual(crypto.randomUUID(), globalThis.crypto.randomUUID());
assert(globalThis.crypto.getRandomValues(new Uint16Array(64)).some((x) => x > 255) && crypto.getRandomValues(new Uint8Array(16)).some(Boolean));
assert.throws(() => globalThis.crypto.getRandomValues(new Float32Array(1)));
`

func TestRandomInNode(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, runtime.Guest()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), testutil.Program(t, "node"), "--input-type=module", "-e", drawn, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
