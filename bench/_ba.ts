import { join } from 'node:path'
import { openPlace } from '/work/main/bench/place.ts'
import { runMigrate } from '/work/main/bench/migrate.ts'
import { writeSample } from '/work/main/producers/migrate/sample.ts'
const place = await openPlace()
try {
  const file = join(place.dir, 'cards.csv')
  await writeSample(file, { rows: Number(process.argv[3] ?? 200000), seed: 1, now: Date.now() })
  const inst = await place.open(process.argv[2] as 'redis')
  try { console.log(process.argv[2], await runMigrate(inst, file)) } finally { await inst.close() }
} finally { await place.close() }
