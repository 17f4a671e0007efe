// A gateway whose queue never takes anything, so that it can be killed between a 202 and the queueing.
import { serveGateway } from '../../src/cli/gateway.ts'
import { openSession } from '../../src/cli/open.ts'

const { stdin, stdout, stderr } = process
const { port, deps } = await serveGateway(openSession({ env: process.env, stdin, stdout, stderr }, 'gateway'))
deps.queues.add = () => new Promise<void>(() => {})
deps.queues.addBulk = () => new Promise<void>(() => {})
stdout.write(`port ${port}\n`)
