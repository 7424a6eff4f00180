// unpack.mjs FOLDER: unpacks the Chromium of node_modules into FOLDER, with its libraries and the one font that it knows:
// pages look the same on every machine, and nothing of the system is needed but libc.
import { execFileSync } from 'node:child_process';
import { cpSync, createReadStream, createWriteStream, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createBrotliDecompress } from 'node:zlib';

const modules = join(dirname(fileURLToPath(import.meta.url)), 'node_modules');
const bin = join(modules, '@sparticuz/chromium/bin');
const to = resolve(process.argv[2]);
const unpack = (name, file, mode) => pipeline(createReadStream(join(bin, name)), createBrotliDecompress(), createWriteStream(file, { mode }));

for (const folder of ['', 'lib', 'fonts']) mkdirSync(join(to, folder), { recursive: true });
await unpack('chromium.br', join(to, 'chromium'), 0o755);
for (const [name, where] of [['swiftshader.tar.br', '.'], ['al2023.tar.br', '.']]) {
  const tar = join(to, name + '.tar');
  await unpack(name, tar, 0o644);
  execFileSync('tar', ['-xf', tar, '-C', join(to, where)]);
  rmSync(tar);
}
for (const font of ['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSansMono', 'DejaVuSansMono-Bold']) {
  cpSync(join(modules, 'dejavu-fonts-ttf/ttf', font + '.ttf'), join(to, 'fonts', font + '.ttf'));
}
writeFileSync(join(to, 'fonts/fonts.conf'), `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="cwd">fonts</dir><cachedir prefix="cwd">cache</cachedir></fontconfig>
`);
