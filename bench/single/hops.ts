// The reference of (j): two BullMQ hops with nothing done in them. A job goes to a queue, a worker in another process
// puts a job on a second queue, and this process takes that one: as many at once as in (c) and (j).
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { Installation } from '../../test/support/installation.ts'
import { type ProcessorTime, watchProcessor } from './processor.ts'
import { IN_FLIGHT } from './run.ts'

const PREFIX = '{hops}'
const LEAVING = { removeOnComplete: true, attempts: 1 } as const
const connect = () => new Redis(process.env['HOPS_REDIS'] ?? '', { maxRetriesPerRequest: null })
const SCRIPT = fileURLToPath(import.meta.url)

/** Redis only. Returns jobs per second. */
export async function runHops(
  installation: Installation,
  rows: number,
): Promise<{ perSecond: number; processor: ProcessorTime }> {
  process.env['HOPS_REDIS'] = installation.env['REDIS_URL']
  const child = fork(SCRIPT, { env: process.env })
  await new Promise(resolve => child.once('message', resolve))
  const clients = [connect(), connect()] as const
  const queue = new Queue('there', { connection: clients[0], prefix: PREFIX })
  let done = 0
  let sent = 0
  const finished = Promise.withResolvers<void>()
  const send = () => {
    sent += 1
    queue.add('job', { n: sent }, { ...LEAVING, jobId: `job_${sent}` }).catch(finished.reject)
  }
  const back = new Worker(
    'back',
    async () => {
      done += 1
      if (done === rows) finished.resolve()
      if (sent < rows) send()
    },
    { connection: clients[1], prefix: PREFIX, concurrency: IN_FLIGHT },
  )
  await back.waitUntilReady()
  const processor = await watchProcessor(installation)
  const began = performance.now()
  for (let index = 0; index < Math.min(IN_FLIGHT, rows); index += 1) send()
  await finished.promise
  const perSecond = (rows * 1000) / (performance.now() - began)
  const used = processor(rows)
  await end(child)
  await back.close()
  await queue.close()
  for (const client of clients) client.disconnect()
  return { perSecond, processor: used }
}

async function end(child: ChildProcess): Promise<void> {
  const exited = new Promise(resolve => child.once('exit', resolve))
  child.send('end')
  await exited
}

if (process.argv[1] === SCRIPT && process.send) {
  const clients = [connect(), connect()] as const
  const queue = new Queue('back', { connection: clients[0], prefix: PREFIX })
  const worker = new Worker(
    'there',
    async job => {
      await queue.add('job', job.data, { ...LEAVING, jobId: job.id ?? '' })
    },
    { connection: clients[1], prefix: PREFIX, concurrency: 64 },
  )
  process.once('message', async () => {
    await worker.close()
    process.exit(0)
  })
  await worker.waitUntilReady()
  process.send('ready')
}
