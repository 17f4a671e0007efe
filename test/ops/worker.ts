// Acts as a worker process that only replies to its supervisor. It gives its process id as a reason for not being
// ready, so that a test learns the id.

import { openHealth } from '../../src/health.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import { endWithParent } from '../../src/lifetime.ts'
import { openRegistry } from '../../src/metrics.ts'
import { answerSupervisor } from '../../workers/process/process-report.ts'
import { readWorkerSettings } from '../../workers/process/worker-settings.ts'

endWithParent()
const { name } = readWorkerSettings(process.env, CATALOGUE)
const registry = openRegistry({ role: 'worker', process: name })
// Not a number, which JSON can't hold.
registry.gauge('test_ratio', 'Of nothing to nothing.').set(Number.NaN)
answerSupervisor(openHealth(registry, { others: async () => [String(process.pid)] }))
process.send?.({ ready: true })
