// Stands for a worker process: it works on nothing, and answers its supervisor. Its process id is what keeps it from being
// ready, so that a test can reach it.

import { openHealth } from '../../src/health.ts'
import { endWithParent } from '../../src/lifetime.ts'
import { openRegistry } from '../../src/metrics.ts'
import { answerSupervisor } from '../../workers/process/process-report.ts'
import { readWorkerSettings } from '../../workers/process/worker-settings.ts'

endWithParent()
const { name } = readWorkerSettings(process.env)
const registry = openRegistry({ role: 'worker', process: name })
// Not a number, which not every message can hold.
registry.gauge('test_ratio', 'Of nothing to nothing.').set(Number.NaN)
answerSupervisor(openHealth(registry, { others: async () => [String(process.pid)] }))
process.send?.({ ready: true })
