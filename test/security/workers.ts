// Workers as `tokenmill workers` runs them, but misbehaving (worker.ts), for a test that reads all that they print.
import { fileURLToPath } from 'node:url'
import { untilSignal } from '../../src/lifetime.ts'
import { openLog } from '../../src/log.ts'
import { supervise } from '../../workers/process/supervise.ts'

const script = fileURLToPath(new URL('worker.ts', import.meta.url))
const workers = supervise({ log: openLog('trace', { role: 'workers' }), processes: 1, script })
await workers.ready
process.stdout.write('workers work\n')
await untilSignal()
await workers.close()
