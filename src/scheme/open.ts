// Opens the providers that the scheme file names, each with its own rate limiter, circuit breaker and connections. This
// file decides which provider gets a card. The workers decide when to call, and what to do with the answer.
import type { Clock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import { type Outbound, openOutbound } from '../outbound.ts'
import { type Caller, openCaller } from './call.ts'
import { openEncryption } from './mastercard.ts'
import { openMdes } from './mdes.ts'
import { type Notification, readNotification } from './notification.ts'
import type { SchemeProvider } from './provider.ts'
import { type MdesSettings, readSchemeFile, type SchemeSettings, type ThirdPartySettings } from './scheme-file.ts'
import { openThirdParty } from './third-party.ts'

interface SchemesOptions {
  /** The path in TOKENMILL_SCHEME_FILE; undefined: there are no providers. */
  file: string | undefined
  privateHosts: readonly string[]
  log: Logger
  clock: Clock
}

/**
 * The granted and the current rate of calls to a provider, per second. Until `limit` is called, this process may use
 * the whole rate.
 */
export interface SchemeRate extends Pick<Caller, 'rate' | 'part' | 'limit' | 'load' | 'isResting' | 'slowdown'> {
  /** The provider's name. */
  name: string
  /** The rate for all processes of the installation together. */
  granted: number
}

/** Which third party a request is for. `contract`: as `token_context` names it; `entityId`: the requesting entity. */
interface ThirdPartyContext {
  type: string
  contract: string | undefined
  entityId: string
}

interface ThirdParty {
  contract: string
  provider: SchemeProvider
}

export interface Schemes {
  mdes: SchemeProvider | undefined
  /** The network that makes scheme tokens for cards of that brand; undefined if there is none. */
  network(brand: string): SchemeProvider | undefined
  /**
   * The provider of the named contract, else of the entity's own contract. A contract of one entity never serves
   * another entity.
   */
  thirdParty(context: ThirdPartyContext): ThirdParty | undefined
  /** The network or third party with that name. */
  named(name: string): SchemeProvider | undefined
  rates: readonly SchemeRate[]
  /** Undefined if there is no network. */
  readNotification: ((authorization: string | undefined, body: unknown) => Notification) | undefined
  close(): Promise<void>
}

/** Opens all providers. Throws `ConfigError` (exit 78) if the scheme file, or a file that it names, is wrong. */
export function openSchemes(options: SchemesOptions): Schemes {
  const settings: SchemeSettings =
    options.file === undefined ? { mdes: undefined, thirdParties: [] } : readSchemeFile(options.file)
  const network = settings.mdes && openNetwork(settings.mdes, options)
  const mdes = network?.provider
  const contracts = new Map(settings.thirdParties.map(one => [one.contract, openContract(one, options)]))
  const opened = [...(network ? [network] : []), ...contracts.values()]
  const byName = new Map(opened.map(({ provider }) => [provider.name, provider]))
  const brands = new Set(settings.mdes?.brands)
  return {
    mdes,
    network: brand => (brands.has(brand) ? mdes : undefined),
    thirdParty: context => {
      const contract = contractOf(settings.thirdParties, context)
      const provider = contracts.get(contract ?? '')?.provider
      return contract === undefined || !provider ? undefined : { contract, provider }
    },
    named: name => byName.get(name),
    rates: opened.map(({ rate }) => rate),
    readNotification: notificationReader(settings.mdes),
    close: async () => {
      await Promise.all(opened.map(({ provider }) => provider.close()))
    },
  }
}

function contractOf(settings: readonly ThirdPartySettings[], context: ThirdPartyContext): string | undefined {
  const { type, contract, entityId } = context
  const open = settings.filter(one => one.type === type && (one.entityId ?? entityId) === entityId)
  // An unknown contract gets no provider: its cards must not go to another contract's provider.
  if (contract !== undefined) return open.find(one => one.contract === contract)?.contract
  return open.find(one => one.entityId === entityId)?.contract
}

function notificationReader(mdes: MdesSettings | undefined): Schemes['readNotification'] {
  return mdes && ((authorization, body) => readNotification(mdes, authorization, body))
}

interface Opened {
  provider: SchemeProvider
  rate: SchemeRate
}

function open(
  { ratePerSecond, connections }: { ratePerSecond: number; connections: number },
  { privateHosts, clock }: SchemesOptions,
  connect: (outbound: Outbound, caller: Caller) => SchemeProvider,
): Opened {
  const outbound = openOutbound({ privateHosts, connections })
  const caller = openCaller({ ratePerSecond, connections, clock })
  const provider = connect(outbound, caller)
  const { rate, part, limit, load, isResting, slowdown } = caller
  return {
    provider: { ...provider, close: () => provider.close().then(outbound.close) },
    rate: { name: provider.name, granted: ratePerSecond, rate, part, limit, load, isResting, slowdown },
  }
}

function openNetwork(settings: MdesSettings, options: SchemesOptions): Opened {
  const encrypt = openEncryption(settings.keys.encryptionCertificate)
  return open(settings, options, (outbound, caller) =>
    openMdes({ ...settings, outbound, caller, encrypt, log: options.log }),
  )
}

function openContract(settings: ThirdPartySettings, options: SchemesOptions): Opened {
  return open(settings, options, (outbound, caller) => openThirdParty(outbound, caller, settings, options.log))
}
