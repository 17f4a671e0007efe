// The 3-D Secure service without HTTP for callers: a real store, key ring and connector, the simulator, and the
// endpoint for results of directory servers.
import { randomBytes, randomUUID, randomUUIDv7 } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openLog } from '../../src/log.ts'
import { openOutbound } from '../../src/outbound.ts'
import { Secret } from '../../src/secret.ts'
import { startThreeDsSimulator, type ThreeDsSimulator } from '../../src/simulate/three-ds/three-ds.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { openThreeDsStore } from '../../src/store/three-ds/three-ds.ts'
import * as contracts from '../../src/store/three-ds/three-ds-contracts.ts'
import { askMsMax, openDirectoryServer } from '../../src/three-ds/connector/directory-server.ts'
import type { Contract } from '../../src/three-ds/contract.ts'
import type { FoundCard, Ports } from '../../src/three-ds/ports.ts'
import { problem } from '../../src/three-ds/problem.ts'
import { receiveResult } from '../../src/three-ds/result.ts'
import { keksOf } from '../../src/vault/kek/provider.ts'
import { type KeyRing, makeDataKeys, openKeyRing, PURPOSES } from '../../src/vault/ring/key-ring.ts'
import * as jwt from '../../src/vault/three-ds-jwt.ts'
import { freshDatabase } from '../support/postgres.ts'
import { openKek } from '../vault/bundle.ts'
import { brandOf, makeContract } from './samples.ts'

export interface Bundle {
  url: string
  store: Store
  ring: KeyRing
  ports: Ports
  simulator: ThreeDsSimulator
  contract: Contract
  addContract(more?: Partial<Contract>): Promise<Contract>
  /** Puts the clock of the service forward. */
  advance(ms: number): void
  close(): Promise<void>
}

export async function openBundle({ timeoutMs = 5_000 }: { timeoutMs?: number } = {}): Promise<Bundle> {
  const database = await freshDatabase()
  const log = openLog('silent')
  const store = openStore(database.url, { log, connectionsMax: 6 })
  const kek = await openKek()
  const ring = await openKeyRing(keksOf(kek), await makeDataKeys(kek, PURPOSES))
  const simulator = await startThreeDsSimulator({ host: '127.0.0.1', port: 0 })
  const outbound = openOutbound({ privateHosts: ['127.0.0.1'], connections: 20 })
  let ahead = 0
  const { server, port } = await listen((body, path) =>
    receiveResult(ports, body, path.split('/').at(-1) ?? '').then(({ message }) => message),
  )
  const ports: Ports = {
    ...openThreeDsStore(store, ring, () => true),
    jwt,
    requestDigest: async text => ring.requestDigest(text),
    requestDigestBy: async (text, keyVersion) => ring.requestDigestBy(text, keyVersion),
    directory: contract => openDirectoryServer(contract.directoryUrl, { outbound, timeoutMs }),
    findCard: async (_caller, source) => findCard(source),
    server: { url: `http://127.0.0.1:${port}/rreq`, refNumber: 'ref-1', operatorId: 'operator-1' },
    clock: () => Date.now() + ahead,
    newId: () => randomUUIDv7(),
    newUuid: () => randomUUID(),
    askMsMax: askMsMax(timeoutMs),
  }
  const addContract = async (more: Partial<Contract> = {}) => {
    const contract = makeContract(simulator.url, more)
    await contracts.insert(store, ring, contract)
    return contract
  }
  return {
    url: database.url,
    store,
    ring,
    ports,
    simulator,
    contract: await addContract(),
    addContract,
    advance: ms => {
      ahead += ms
    },
    async close() {
      await simulator.close()
      await outbound.close()
      await new Promise(done => {
        server.close(done)
        server.closeAllConnections()
      })
      await store.close()
      await database.drop()
    },
  }
}

/** A token of the tests holds its card's number; `x` in front of it makes it CB. An encrypted card is the number. */
function findCard(source: Parameters<Ports['findCard']>[1]): FoundCard | ReturnType<typeof problem> {
  const text = source.kind === 'token' ? source.token : source.encryptedCard
  const number = /\d+$/.exec(text)?.[0]
  if (number === undefined) return problem(205, { field: source.field, reason: 'token_not_found' })
  const pan = new Secret(number)
  const card = {
    pan,
    expiryMonth: 1,
    expiryYear: 2031,
    detected: brandOf(number),
    cardBrand: text.startsWith('tx') ? 'CB' : undefined,
  }
  return source.kind === 'token'
    ? { ...card, tokenId: `00000000-0000-7000-8000-${number.slice(-12)}` }
    : { ...card, tokenId: null }
}

/** Answers posted JSON with JSON. */
export async function listen(
  answer: (body: unknown, path: string) => Promise<unknown>,
): Promise<{ server: Server; port: number }> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(await answer(body, request.url ?? '')))
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  return { server, port: (server.address() as AddressInfo).port }
}

export const randomKey = () => new Secret(randomBytes(32))

/**
 * Acts as a browser at the challenge: posts the CReq, then the code or the cancellation. Returns the form that brings
 * the browser back.
 */
export async function challenge(
  answer: Readonly<Record<string, string>>,
  fields: Record<string, string>,
): Promise<{ page: string; back: Record<string, string>; action: string }> {
  const form = (url: string, values: Record<string, string>) =>
    fetch(url, { method: 'POST', body: new URLSearchParams(values) }).then(answer => answer.text())
  const page = await form(answer['acs_url'] ?? '', { creq: answer['payload'] ?? '', threeDSSessionData: 'session' })
  const action = /<form method="post" action="([^"]+)"/.exec(page)?.[1] ?? ''
  const returned = await form(action, fields)
  const inputs = [...returned.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)]
  return {
    page,
    back: Object.fromEntries(inputs.map(match => [match[1] ?? '', match[2] ?? ''])),
    action: /<form method="post" action="([^"]+)"/.exec(returned)?.[1] ?? '',
  }
}
