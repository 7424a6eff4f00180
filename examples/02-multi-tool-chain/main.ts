import { get_customer, list_orders } from "servers/shop";
import { add_note, list_notes } from "servers/notes";

const { orders } = await list_orders({ month: "march" });
const best = orders.reduce((a, b) => (b.amount > a.amount ? b : a));
const { city } = await get_customer({ name: best.customer });
await add_note({ title: `best order of march: ${best.id}`, text: `${best.customer} in ${city}, ${best.amount}` });
const { notes } = await list_notes();
console.log(`${notes[0].title} (${notes[0].text})`);
