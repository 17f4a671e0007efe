// Implements the ports of src/three-ds with what this process has opened. Nothing is decided here.
import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { isContractGranted } from '../../../src/acts/contract-grants.ts'
import type { Clock } from '../../../src/clock.ts'
import type { Outbound } from '../../../src/outbound.ts'
import { openThreeDsStore } from '../../../src/store/three-ds/three-ds.ts'
import type { SealedContract } from '../../../src/store/three-ds/three-ds-contracts.ts'
import type { ServerIdentity } from '../../../src/three-ds/areq/members.ts'
import { askMsMax, openDirectoryServer } from '../../../src/three-ds/connector/directory-server.ts'
import type { DirectoryServer, Ports } from '../../../src/three-ds/ports.ts'
import type { LiveRing } from '../../../src/vault/ring/key-ring.ts'
import { reloading } from '../../../src/vault/ring/reload.ts'
import type { TellUngranted } from '../../../src/vault/ring/ungranted.ts'
import * as jwt from '../../../src/vault/three-ds-jwt.ts'
import { type CardVault, openCards } from './card.ts'
import type { ThreeDsMetrics } from './metrics.ts'

export interface PortsDeps extends CardVault {
  ring: LiveRing
  outbound: Outbound
  metrics: ThreeDsMetrics
  clock: Clock
  /** Told of a contract that tokenmill didn't write, or that was changed since, each time that it is read. */
  onUngranted: TellUngranted
}

/** Each lookup reads `server.url`, which is set once the process listens. */
export function openPorts(deps: PortsDeps, server: ServerIdentity, timeoutMs: number): Ports {
  const { store, ring, outbound, metrics, clock, onUngranted } = deps
  const isOurs = (contract: SealedContract) => {
    const granted = isContractGranted(ring, contract)
    if (!granted) onUngranted('threeds-contract', contract.contractId)
    return granted
  }
  const { authentications: of, contracts, jwts } = openThreeDsStore(store, ring, isOurs)
  return {
    authentications: {
      find: reloading(ring, of.find),
      findByTransaction: reloading(ring, of.findByTransaction),
      findByKey: reloading(ring, of.findByKey),
      findOverdue: of.findOverdue,
      insert: reloading(ring, of.insert),
      save: reloading(ring, of.save),
      saveWithJwt: reloading(ring, of.saveWithJwt),
    },
    contracts: { find: reloading(ring, contracts.find) },
    jwts,
    jwt,
    requestDigest: reloading(ring, async text => ring.requestDigest(text)),
    requestDigestBy: reloading(ring, async (text, keyVersion) => ring.requestDigestBy(text, keyVersion)),
    directory: contract => timed(openDirectoryServer(contract.directoryUrl, { outbound, timeoutMs }), metrics),
    findCard: reloading(ring, openCards(deps)),
    server,
    clock,
    newId: () => randomUUIDv7(),
    newUuid: () => randomUUID(),
    askMsMax: askMsMax(timeoutMs),
  }
}

function timed(server: DirectoryServer, metrics: ThreeDsMetrics): DirectoryServer {
  return {
    async authenticate(areq) {
      const begunAt = performance.now()
      const answer = await server.authenticate(areq)
      metrics.directorySeconds.observe({ answer: answer.kind }, (performance.now() - begunAt) / 1000)
      return answer
    },
  }
}
