import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { openPlace } from './place.ts'
import { startCommand } from '../test/support/process.ts'
import { writeSample } from '../producers/migrate/sample.ts'
const rows = Number(process.argv[3] ?? 200000)
const place = await openPlace()
const cpu = () => {
  const out: Record<string, number> = {}
  for (const pid of readdirSync('/proc').filter(x => /^\d+$/.test(x))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8'); const f = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const cmd = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').slice(0, 90)
      const rss = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
      out[`${pid} ${cmd} hwm=${Math.round(Number(rss) / 1024)}M`] = (Number(f[11]) + Number(f[12])) / 100
    } catch {}
  }
  return out
}
try {
  const file = join(place.dir, 'cards.csv')
  await writeSample(file, { rows, seed: 1, now: Date.now() })
  const inst = await place.open(process.argv[2] as 'redis')
  await inst.startWorkers({ processes: 2, roles: ['bulk'], ...(process.env.PROF ? { env: { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${process.env.PROF}` } } : {}) })
  const before = cpu()
  const child = startCommand(['migrate', file, '--client', inst.clientFile, '--json'], { env: inst.env as never, nodeArgs: process.env.PROF ? ['--cpu-prof', `--cpu-prof-dir=${process.env.PROF}`] : [] })
  const timer = setInterval(() => { last = cpu() }, 200); let last = cpu()
  await child.exit
  clearInterval(timer)
  const after = { ...last, ...cpu() }
  const key = (k: string) => k.replace(/ hwm=.*/, '')
  const b = new Map(Object.entries(before).map(([k, v]) => [key(k), v]))
  let sum = 0
  const merged = new Map<string, [string, number]>()
  for (const [k, v] of Object.entries(after)) { const prev = merged.get(key(k)); if (!prev || prev[1] <= v) merged.set(key(k), [k, v]) }
  for (const [k, v] of merged.values()) { const d = v - (b.get(key(k)) ?? 0); if (d > 0.15 && /migrate|worker-process|postgres: tokenmill|postgres: tokenmill|redis-server|postgres/.test(k)) { console.log(d.toFixed(2), ((d / rows) * 1e6).toFixed(1) + 'us', k) ; sum += d } }
  console.log('total us/card', ((sum / rows) * 1e6).toFixed(1), child.stdout().match(/"ms": \d+/)?.[0], child.stderr().slice(-200))
  await inst.close()
} finally { await place.close() }
