// The providers of an installation, as its scheme file names them, each with its own pace, breaker and connections.
// Which of them a card goes to is decided here; when, and what follows, is the workers'.
import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import { openOutbound } from '../outbound.ts'
import { openCaller } from './call.ts'
import { openEncryption } from './mastercard.ts'
import { openMdes } from './mdes.ts'
import { type Notification, readNotification } from './notification.ts'
import type { SchemeProvider } from './provider.ts'
import { type MdesSettings, readSchemeFile, type SchemeSettings, type ThirdPartySettings } from './scheme-file.ts'
import { openThirdParty } from './third-party.ts'

export interface SchemesOptions {
  /** TOKENMILL_SCHEME_FILE; undefined: no provider at all. */
  file: string | undefined
  privateHosts: readonly string[]
  log: Logger
  clock: Clock
  /** This process's part of every granted rate, above 0 and at most 1. */
  share?: number
}

/** `contract` as `token_context` names it; `entityId` is whose card it is. */
export interface ThirdPartyContext {
  type: string
  contract: string | undefined
  entityId: string
}

export interface ThirdParty {
  contract: string
  provider: SchemeProvider
}

export interface Schemes {
  mdes: SchemeProvider | undefined
  /** The network that makes scheme tokens for cards of that brand. */
  network(brand: string): SchemeProvider | undefined
  /** By contract where one is named, else the entity's of that type. A contract that is one entity's serves no other. */
  thirdParty(context: ThirdPartyContext): ThirdParty | undefined
  /** The network or third party of that name. */
  named(name: string): SchemeProvider | undefined
  /** Undefined where there is no network. */
  readNotification: ((authorization: string | undefined, body: unknown) => Notification) | undefined
  close(): Promise<void>
}

/** Throws `ConfigError` (exit 78) where the file or what it names is wrong. */
export function openSchemes(options: SchemesOptions): Schemes {
  const settings: SchemeSettings =
    options.file === undefined ? { mdes: undefined, thirdParties: [] } : readSchemeFile(options.file)
  const mdes = settings.mdes && openNetwork(settings.mdes, options)
  const thirdParties = new Map(settings.thirdParties.map(one => [one.contract, openContract(one, options)]))
  const byName = new Map([mdes, ...thirdParties.values()].flatMap(one => (one ? [[one.name, one]] : [])))
  const brands = new Set(settings.mdes?.brands)
  return {
    mdes,
    network: brand => (brands.has(brand) ? mdes : undefined),
    thirdParty: context => {
      const contract = contractOf(settings.thirdParties, context)
      const provider = thirdParties.get(contract ?? '')
      return contract === undefined || !provider ? undefined : { contract, provider }
    },
    named: name => byName.get(name),
    readNotification: notificationReader(settings.mdes),
    close: async () => {
      await Promise.all([mdes, ...thirdParties.values()].map(provider => provider?.close()))
    },
  }
}

function contractOf(settings: readonly ThirdPartySettings[], context: ThirdPartyContext): string | undefined {
  const { type, contract, entityId } = context
  const open = settings.filter(one => one.type === type && (one.entityId ?? entityId) === entityId)
  // A contract that is named and isn't there is none; another one's cards must not go elsewhere.
  if (contract !== undefined) return open.find(one => one.contract === contract)?.contract
  return open.find(one => one.entityId === entityId)?.contract
}

function notificationReader(mdes: MdesSettings | undefined): Schemes['readNotification'] {
  return mdes && ((authorization, body) => readNotification(mdes, authorization, body))
}

function transport(
  { ratePerSecond, connections }: { ratePerSecond: number; connections: number },
  { privateHosts, clock, share = 1 }: SchemesOptions,
) {
  return {
    outbound: openOutbound({ privateHosts, connections }),
    caller: openCaller({ ratePerSecond: ratePerSecond * share, connections, clock }),
  }
}

function openNetwork(settings: MdesSettings, options: SchemesOptions): SchemeProvider {
  const { outbound, caller } = transport(settings, options)
  const encrypt = openEncryption(settings.keys.encryptionCertificate)
  const provider = openMdes({ ...settings, outbound, caller, encrypt, log: options.log })
  return { ...provider, close: () => provider.close().then(outbound.close) }
}

function openContract(settings: ThirdPartySettings, options: SchemesOptions): SchemeProvider {
  const { outbound, caller } = transport(settings, options)
  const provider = openThirdParty(outbound, caller, settings, options.log)
  return { ...provider, close: () => provider.close().then(outbound.close) }
}
