// Runs misbehaving workers (worker.ts) under a supervisor, for a test that reads their output and metrics.

import { fileURLToPath } from 'node:url'
import { CATALOGUE } from '../../src/job/composition.ts'
import { untilSignal } from '../../src/lifetime.ts'
import { openLog } from '../../src/log.ts'
import { openOps } from '../../src/ops.ts'
import { supervise } from '../../workers/process/supervise.ts'

const script = fileURLToPath(new URL('worker.ts', import.meta.url))
const workers = supervise({
  log: openLog('trace', { role: 'workers' }),
  catalogue: CATALOGUE,
  processes: { bulk: 1, interactive: 1 },
  script,
  withQueues: work => work({ handBack: async () => 0 }),
})
await workers.ready
const { reasons, snapshots } = workers
const ops = await openOps({ host: '127.0.0.1', port: 0, reasons, snapshots })
process.stdout.write(`workers work, metrics on ${ops.port}\n`)
await untilSignal()
await ops.close()
await workers.close()
