// A gateway whose queue never takes a job, so that a test can kill it after a 202 and before the job is queued.

import { openSession } from '../../../cli/open/open.ts'
import { serveGateway } from '../../../cli/process/gateway.ts'

const { stdin, stdout, stderr } = process
const { port, deps } = await serveGateway(openSession({ env: process.env, stdin, stdout, stderr }, 'gateway'))
deps.queues.add = () => new Promise<void>(() => {})
deps.queues.addBulk = () => new Promise<void>(() => {})
stdout.write(`port ${port}\n`)
