// Answers what the core asks of card networks and third parties (../networks.ts), and takes the actions that jobs and the
// records of chunks request for scheme tokens to the networks.
import { assert, type Refusal, refuse } from '../../src/errors.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as shownSchemes from '../../src/store/provider/scheme-views.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { stepOf } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import {
  type ActingJob,
  type AskedAction,
  type Compensation,
  type JobIds,
  type Leftovers,
  type MadeScheme,
  type Networks,
  SCHEME_FIELD,
  type SchemeResult,
  type SchemeTokens,
  type ThirdParties,
} from '../networks.ts'
import { compensateAll } from './compensate.ts'
import type { ProviderDeps, Providers } from './deps.ts'
import { effectsOf, endLeftovers, providerEffects } from './effect.ts'
import { type NetworkAction, runNetworkActions } from './network-actions.ts'
import { endOwing, findCompensations, owes, recordOwed } from './owed-compensation.ts'
import { queueReversal } from './queue-reversal.ts'
import { type RelinkAction, relinkAction, runRelinkActions } from './relink-actions.ts'
import { findReplacements, provisionsOf, relinkedOf, relinkRefusal } from './scheme-replacement.ts'
import { actionOf, runThirdPartyActions } from './third-party-actions.ts'
import { firstSchemes, reconcileNow } from './token-effects.ts'

/** `providers`: undefined if none is set up; then what other processes have left is still shown, ended and undone. */
export function openNetworks(providers: Providers | undefined): Networks<Deps> {
  const withProviders = (deps: Deps) => ({ ...deps, providers })
  const thirdParties: ThirdParties<Deps> = {
    findContract(asked) {
      const found = providers?.schemes.thirdParty(asked)
      return found && { provider: found.provider.name, contract: found.contract }
    },
    findTokens: schemeTokens.findThirdPartyTokens,
    make: (job, cards, urgency, deps) => runThirdPartyActions(job, cards.map(actionOf), urgency, withProviders(deps)),
    takeUp: (receiptId, made) =>
      effectsOf({ takeUps: [{ receiptId, provisionIds: made.map(({ provisionId }) => provisionId) }] }),
  }
  const schemes: SchemeTokens<Deps> = {
    findShown: shownSchemes.findByTokens,
    relinkRefusal: (action, row) => relinkRefusal(action, row, { providers }),
    act: (job, asked, deps) => actFor(job, asked, withProviders(deps)),
    make: (job, token, deps) => makeFor(job, token, withProviders(deps)),
    actForRecords: (job, asked, deps) => actForRecords(job, asked, withProviders(deps)),
    provision(made, job, { ring, clock }) {
      const provisions = firstSchemes(made, job, { ring, clock, providers })
      if (provisions.length === 0) return { effects: [], calls: undefined }
      return { effects: effectsOf({ provisions }), calls: provisions.map(({ provisionId }) => provisionId) }
    },
    retire: (tokenId, shown) => ({
      effects: effectsOf({ retirements: [tokenId] }),
      calls: shown ? [shown.row.provisionId] : [],
    }),
    async replace(db, linked, job, { ring, clock, directory }) {
      const relinked = await relinkedOf(db, linked, { directory })
      if (relinked.length === 0) return { effects: [], calls: undefined }
      const replacements = await findReplacements(db, relinked, job, { ring, clock, providers })
      return { effects: effectsOf({ replacements }), calls: replacements.flatMap(provisionsOf) }
    },
    async restore(db, linked, job, { ring, clock }) {
      // The former card had no scheme token, and gets none.
      await schemeTokens.withdrawAll(db, await storedSchemes.findFirst(db, linked.token.tokenId), clock())
      const relinked = [{ ...linked, action: undefined }]
      return effectsOf({ replacements: await findReplacements(db, relinked, job, { ring, clock, providers }) })
    },
    settle: (calls, deps) => reconcileNow(calls, withProviders(deps)),
  }
  const compensation: Compensation<Deps> = {
    async find(receiptId, db) {
      if (!providers) return { effects: [], isOwed: false }
      const compensations = await findCompensations(db, [receiptId])
      return { effects: effectsOf({ compensations }), isOwed: owes(compensations) }
    },
    endOwing: async (receiptId, receiptOf, deps) => (providers ? endOwing(receiptId, receiptOf, deps) : undefined),
    queueReversal: (receipt, deps) => queueReversal(receipt, withProviders(deps)),
    hasAsked: async (receiptId, db) => (await intents.findByReceipt(db, receiptId)).length > 0,
    record: recordOwed,
    run: (receiptId, deps) => compensateAll(receiptId, withProviders(deps)),
  }
  const leftovers: Leftovers = {
    effects: receiptId => effectsOf({ leftovers: [receiptId] }),
    end: async (db, receiptId, now) => (providers ? endLeftovers(db, [receiptId], now) : undefined),
    abandon: async (db, receiptId, now) => (providers ? schemeTokens.retireUntakenOf(db, [receiptId], now) : undefined),
  }
  return { thirdParties, schemeTokens: schemes, effects: providerEffects, compensation, leftovers }
}

/** Activates or suspends at the network. Throws as `RunActions` says. */
async function actFor(
  { receiptId, clientId }: JobIds,
  { token, scope, action }: Pick<AskedAction, 'token' | 'scope' | 'action'>,
  deps: ProviderDeps,
): Promise<SchemeResult> {
  if (action === 'DELETE') return deletionOf(token.tokenId, deps)
  const job = { receiptId, clientId, mayHaveReceipt: false }
  const asked = { line: 0, token, scope, action, field: SCHEME_FIELD }
  return (await runNetworkActions(job, [asked], 'interactive', deps)).get(0) ?? 'same'
}

/** Has a scheme token made for the card that the token is about to get. Throws as `RunActions` says. */
async function makeFor(
  { receiptId, clientId }: JobIds,
  token: StoredToken,
  deps: ProviderDeps,
): Promise<MadeScheme | Refusal> {
  const job = { receiptId, clientId, mayHaveReceipt: false }
  const action = relinkAction(receiptId, token, { line: 0, field: SCHEME_FIELD })
  const made = (await runRelinkActions(job, [action], 'interactive', deps)).get(0)
  assert(made, 'each action has a result')
  return made
}

/** Whether there is a scheme token to delete. The deletion is recorded with the job's receipt, and called for later. */
async function deletionOf(tokenId: string, { store }: Pick<ProviderDeps, 'store'>): Promise<SchemeResult> {
  const [row] = await storedSchemes.findCurrent(store, [tokenId])
  const step = stepOf(row, 'DELETE')
  if (step === 'absent') return refuse('scheme_token_absent', SCHEME_FIELD)
  return step === 'retire' ? 'changed' : 'same'
}

/** How the actions of a chunk's records ended, by line. Throws as `RunActions` says. */
async function actForRecords(
  job: ActingJob,
  asked: readonly AskedAction[],
  deps: ProviderDeps,
): Promise<Map<number, SchemeResult | MadeScheme>> {
  const actions: NetworkAction[] = []
  const relinks: RelinkAction[] = []
  for (const { line, token, scope, action, isRelinked } of asked) {
    const at = { line, field: SCHEME_FIELD }
    if (isRelinked) relinks.push(relinkAction(job.receiptId, token, at))
    else actions.push({ ...at, token, scope, action })
  }
  const ends = new Map<number, SchemeResult | MadeScheme>()
  for (const [line, end] of await runNetworkActions(job, actions, 'bulk', deps)) ends.set(line, end)
  for (const [line, end] of await runRelinkActions(job, relinks, 'bulk', deps)) ends.set(line, end)
  return ends
}
