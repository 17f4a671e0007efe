// Answers what the core asks of card networks and third parties (../networks.ts).
import * as intents from '../../src/store/provider/scheme-intents.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as shownSchemes from '../../src/store/provider/scheme-views.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { Deps } from '../deps.ts'
import type { Compensation, Leftovers, Networks, SchemeTokens, ThirdParties } from '../networks.ts'
import { compensateAll } from './compensate.ts'
import type { Providers } from './deps.ts'
import { effectsOf, endLeftovers, providerEffects } from './effect.ts'
import { endOwing, findCompensations, owes, recordOwed } from './owed-compensation.ts'
import { queueReversal } from './queue-reversal.ts'
import { actFor, actForRecords, makeFor } from './scheme-action.ts'
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
    async replace(db, linked, job, { ring, clock }) {
      const relinked = await relinkedOf(db, linked)
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
