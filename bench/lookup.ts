// `node bin/launch.mjs bench/lookup.ts [--seconds 20] [--rate 50]`: how long a lookup takes beyond the directory
// server's own time, with a token and with an encrypted card. The goal is under 10 ms at p50, at 50 lookups a second.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { grantContract } from '../src/acts/contract-grants.ts'
import { Secret } from '../src/secret.ts'
import * as contracts from '../src/store/three-ds/three-ds-contracts.ts'
import { areqOf } from '../src/three-ds/areq/areq.ts'
import { LookupRequest } from '../src/three-ds/areq/lookup-request.ts'
import type { Contract } from '../src/three-ds/contract.ts'
import { startCommand } from '../test/support/process.ts'
import { lookupBody, makeContract } from '../test/three-ds/samples.ts'
import { openPlace } from './place.ts'
import { startInteractiveWorkers } from './single/workers.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '20' }, rate: { type: 'string', default: '50' } },
})
const WARM = 100
const PAN = '4000000000001000'

type Ask = () => Promise<void>
const post = async (url: string, authorization: string | undefined, body: unknown): Promise<void> => {
  const headers = { 'content-type': 'application/json', ...(authorization ? { authorization } : {}) }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  const said = (await answer.json()) as Record<string, unknown>
  if (said['pares_status'] !== 'Y' && said['transStatus'] !== 'Y') throw new Error(JSON.stringify(said))
}

function areqFor(contract: Contract): unknown {
  const request = LookupRequest.parse(lookupBody(contract.contractId, PAN))
  const card = { pan: new Secret(PAN), expiryMonth: 12, expiryYear: 2031 }
  const server = { url: 'http://127.0.0.1:1/', refNumber: 'r', operatorId: 'o' }
  const now = Date.now()
  return areqOf({ transactionId: randomUUID(), request, contract, card, network: 'VISA', server, now }).reveal()
}

/** Sends `rate` lookups a second, whether or not earlier ones are answered. Returns ms. */
async function drive(make: () => Promise<Ask>): Promise<{ p50: number; p99: number }> {
  const rate = Number(values.rate)
  const count = Number(values.seconds) * rate
  const asks: Ask[] = []
  for (let n = 0; n < count + WARM; n += 1) asks.push(await make())
  const took: number[] = []
  const running: Promise<void>[] = []
  const began = performance.now()
  for (const [index, ask] of asks.entries()) {
    await pause(Math.max(0, began + (index * 1000) / rate - performance.now()))
    const at = performance.now()
    const asked = ask().then(() => {
      if (index >= WARM) took.push(performance.now() - at)
    })
    // The error is thrown at the end: first everything that was begun must be closed.
    asked.catch(() => {})
    running.push(asked)
  }
  await Promise.all(running)
  took.sort((a, b) => a - b)
  const at = (part: number) => Number((took[Math.floor(took.length * part)] ?? 0).toFixed(1))
  return { p50: at(0.5), p99: at(0.99) }
}

const place = await openPlace()
const simulator = startCommand(['simulate', 'three-ds', '--port', '0', '--json'])
try {
  const [, directoryUrl = ''] = await simulator.line(/"directory_server": "([^"]+)"/)
  const installation = await place.open('postgres')
  try {
    await startInteractiveWorkers(installation)
    const { clientFile, credentials, scope } = await installation.addClient('shop', {
      roles: ['THREEDS', 'TOKEN_WRITE'],
    })
    const { user_id, api_key } = JSON.parse(await readFile(clientFile, 'utf8')) as Record<string, string>
    const authorization = `Basic ${Buffer.from(`${user_id}:${api_key}`).toString('base64')}`
    const contract = makeContract(directoryUrl)
    await contracts.insert(installation.vault.store, installation.vault.ring, contract)
    await grantContract(installation.vault.store, installation.vault.ring, contract)
    const service = startCommand(['three-ds'], {
      env: {
        ...(installation.env as Record<string, string>),
        TOKENMILL_PRIVATE_HOSTS: '127.0.0.1',
        TOKENMILL_THREE_DS_PORT: '0',
        TOKENMILL_CONSOLE_PORT: '0',
        TOKENMILL_LOG_LEVEL: 'info',
      },
    })
    installation.session.lifetime.onClose('three-ds', async () => {
      service.signal('SIGTERM')
      await service.exit
    })
    const [, port] = await service.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' })
    const url = `http://127.0.0.1:${port}/oidc/3ds-service/v2/lookup`
    const client = await installation.connect({ credentials })
    client.results(() => {})
    const sealed = () => client.encryptCard({ cardNumber: PAN, expiryMonth: 12, expiryYear: 2031 })
    const { record } = await client.call('token-create', { token_scope: scope, ...(await sealed()) })
    const body = lookupBody(contract.contractId, PAN)
    const alone = await drive(async () => () => post(directoryUrl, undefined, areqFor(contract)))
    const token = await drive(
      async () => () => post(url, authorization, { ...body, reuse_token: record?.['reuse_token'] }),
    )
    const encrypted = await drive(async () => {
      const { reuse_token: _, ...rest } = { ...body, ...(await sealed()) }
      return () => post(url, authorization, rest)
    })
    const added = ({ p50, p99 }: typeof alone) => ({
      p50: Number((p50 - alone.p50).toFixed(1)),
      p99: Number((p99 - alone.p99).toFixed(1)),
    })
    console.table({
      simulator: alone,
      token,
      encrypted,
      'token, added': added(token),
      'encrypted, added': added(encrypted),
    })
  } finally {
    await installation.close()
  }
} finally {
  simulator.signal('SIGTERM')
  await simulator.exit
  await place.close()
}
