// Prints what the conformance suite has found, a line for each scenario with the number of its
// checks, and exits with 1 if a scenario failed, passed no check, or is missing:
//
//	report.mjs KNOWN SIDE COUNT RESULTS...
//
// The file KNOWN has a line "SIDE SCENARIO: REASON" for each scenario that is known not to pass.
// Such a scenario that passes is a failure, too.
import { readdirSync, readFileSync, existsSync } from "node:fs";
import { join, relative } from "node:path";

const [known, side, count, ...folders] = process.argv.slice(2);
const reasons = new Map();
for (const line of readFileSync(known, "utf8").split("\n")) {
  const [, where, name, reason] = line.match(/^(\S+) (\S+): (.+)$/) ?? [];
  if (where === side) reasons.set(name, reason);
}

const scenarios = new Map();
const collect = (root, folder) => {
  const file = join(folder, "checks.json");
  if (existsSync(file)) {
    const name = relative(root, folder).replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "").replace(/^server-(?!initialize|stateless|session|sse)/, "").replace(/^server-server-/, "server-");
    const checks = JSON.parse(readFileSync(file, "utf8"));
    const of = (status) => checks.filter((c) => c.status === status);
    scenarios.set(name, { passed: of("SUCCESS").length, failed: [...of("FAILURE"), ...of("WARNING")], skipped: of("SKIPPED").length });
    return;
  }
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) collect(root, join(folder, entry.name));
  }
};
for (const folder of folders) if (existsSync(folder)) collect(folder, folder);

let wrong = 0;
let passing = 0;
for (const [name, s] of [...scenarios].sort(([a], [b]) => (a < b ? -1 : 1))) {
  const ok = s.passed > 0 && s.failed.length === 0;
  let text = `${s.passed} checks`;
  if (s.failed.length > 0) text += `, ${s.failed.length} FAILED`;
  if (s.passed === 0 && s.failed.length === 0) text = `NO CHECKS, ${s.skipped} skipped`;
  if (reasons.has(name)) {
    text += ok ? "; KNOWN TO FAIL, and it passes" : ` (known: ${reasons.get(name)})`;
    if (ok) wrong++;
  } else if (!ok) wrong++;
  if (ok) passing++;
  console.log(`${name.padEnd(48)} ${text}`);
  for (const c of s.failed) console.log(`    ${c.id}: ${c.errorMessage ?? c.description}`);
}
console.log(`${side}: ${passing} of ${scenarios.size} scenarios pass`);
if (scenarios.size < Number(count)) {
  console.log(`${side}: ${count} scenarios should have run`);
  wrong++;
}
for (const name of reasons.keys()) {
  if (!scenarios.has(name)) {
    console.log(`${side}: ${name} is known to fail, and did not run`);
    wrong++;
  }
}
process.exit(wrong > 0 ? 1 : 0);
