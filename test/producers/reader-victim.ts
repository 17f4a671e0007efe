// A reader of results to be killed: it handles all results of a delivery but the last, and never ends with that one. Run
// by the tests.
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { openInbox } from '../../producers/results.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import { silent } from './bundle.ts'

const [url = '', prefix = '', clientId = '', jwk = '', results = '', lockMs = ''] = process.argv.slice(2)
const queues = await openRedis([url], { prefix, lockMs: Number(lockMs), log: silent })
const publicKey = createPublicKey({ key: JSON.parse(jwk) as JsonWebKey, format: 'jwk' })
let handled = 0
openInbox(
  queues,
  { clientId, replyTo: 'own', keys: new Map([['inst-1', { alg: 'EdDSA', publicKey }]]) },
  async delivery => {
    handled += 1
    process.stdout.write(`took ${delivery.result_id}\n`)
    return handled < Number(results) ? 'taken' : new Promise(() => {})
  },
  { concurrency: 50, log: silent },
)
