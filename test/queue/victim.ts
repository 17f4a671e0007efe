// A worker process to be killed: takes a job and never ends it. Run by the tests, with its queue as the argument.
import { pino } from 'pino'
import { openPostgres } from '../../src/queue/open-postgres.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import { openPool } from './bundle.ts'

const [url = '', prefix = '', queue = '', lockMs = '', processId] = process.argv.slice(2)
const options = { prefix, lockMs: Number(lockMs), log: pino({ level: 'silent' }) }
const queues = url.startsWith('redis') ? await openRedis([url], options) : await openPostgres(openPool(url), options)
queues.work(
  queue,
  job => {
    process.stdout.write(`took ${job.id}\n`)
    return new Promise(() => {})
  },
  { concurrency: 2, processId },
)
