// The 3-D Secure service over HTTP, with a real store and vault, workers that make tokens and publish events, and the
// simulator. Every answer is held against the OpenAPI document that the process itself serves.

import { openSession } from '../../../../cli/open/open.ts'
import { serveThreeDs } from '../../../../cli/process/three-ds.ts'
import type { Client } from '../../../../producers/client.ts'
import type { ThreeDs } from '../../../../producers/gateway/three-ds/main.ts'
import { grantContract } from '../../../../src/acts/contract-grants.ts'
import type { Role } from '../../../../src/job/catalogue.ts'
import { startThreeDsSimulator, type ThreeDsSimulator } from '../../../../src/simulate/three-ds/three-ds.ts'
import * as contracts from '../../../../src/store/three-ds/three-ds-contracts.ts'
import type { Contract } from '../../../../src/three-ds/contract.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { freshDatabase } from '../../../support/postgres.ts'
import { lookupBody, makeContract } from '../../../three-ds/samples.ts'
import { type Answer, basicOf, type CallOptions, encrypted, openCalls } from '../bundle.ts'

export const SERVICE = '/oidc/3ds-service/v2'
export const ALL_ROLES: Role[] = ['THREEDS', 'TOKEN_WRITE', 'TOKEN_READ', 'TOKEN_LIFECYCLE']

export interface HttpBundle {
  installation: Installation
  databaseUrl: string
  url: string
  process: ThreeDs
  simulator: ThreeDsSimulator
  contract: Contract
  authorization: string
  addContract(more?: Partial<Contract>): Promise<Contract>
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** Posts a lookup with an encrypted card. `more`: replaces fields. */
  lookup(pan: string, more?: Record<string, unknown>, options?: CallOptions): Promise<Answer>
  /** The shop's results queue. */
  shop: Client
  /** Has a worker make a token of this card. */
  tokenize(pan: string): Promise<string>
  /** Opens the service a second time, with other settings. */
  openAnother(
    settings: Record<string, string>,
  ): Promise<{ call: HttpBundle['call']; url: string; close(): Promise<void> }>
  close(): Promise<void>
}

const CARD = { expiryMonth: 12, expiryYear: 2031 }

export async function openHttpBundle(settings: Record<string, string> = {}): Promise<HttpBundle> {
  const database = await freshDatabase()
  const simulator = await startThreeDsSimulator({ host: '127.0.0.1', port: 0 })
  const engine = { name: 'postgres', prefix: '{three-ds}', redisUrls: undefined, databaseUrl: database.url } as const
  const installation = await openInstallation(engine, {
    TOKENMILL_PRIVATE_HOSTS: '127.0.0.1',
    TOKENMILL_THREE_DS_PORT: '0',
    ...settings,
  })
  const { clientFile, credentials, scope } = await installation.addClient('shop', { roles: ALL_ROLES })
  const authorization = await basicOf(clientFile)
  const { store, ring } = installation.vault
  const addContract: HttpBundle['addContract'] = async more => {
    const contract = makeContract(simulator.url, more)
    await contracts.insert(store, ring, contract)
    await grantContract(store, ring, contract)
    return contract
  }
  const openAnother: HttpBundle['openAnother'] = async more => {
    const env = { ...installation.env, ...more }
    const session = openSession(
      { env, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr },
      'three-ds',
    )
    const served = await serveThreeDs(session)
    const url = `http://127.0.0.1:${served.port}`
    return { served, url, call: await openCalls(url, authorization), close: () => session.lifetime.close() }
  }
  const first = (await openAnother({})) as Awaited<ReturnType<typeof openAnother>> & { served: ThreeDs }
  const contract = await addContract()
  const shop = await installation.connect({ credentials })
  return {
    installation,
    databaseUrl: database.url,
    simulator,
    contract,
    authorization,
    shop,
    addContract,
    openAnother,
    url: first.url,
    process: first.served,
    call: first.call,
    lookup: async (pan, more = {}, options = {}) => {
      const card = await encrypted({ cardNumber: pan, ...CARD }, credentials)
      const { reuse_token: _, ...body } = lookupBody(contract.contractId, pan)
      return first.call('POST', `${SERVICE}/lookup`, { body: { ...body, ...card, ...more }, ...options })
    },
    async tokenize(pan) {
      const request = { token_scope: scope, ...(await shop.encryptCard({ cardNumber: pan, ...CARD })) }
      const { record } = await shop.call('token-create', request)
      return String(record?.['reuse_token'])
    },
    async close() {
      await first.close()
      await installation.close()
      await simulator.close()
      await database.drop()
    },
  }
}
