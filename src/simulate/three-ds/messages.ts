// Builds the messages of the simulated directory server and its issuers about one transaction: the answer (ARes) and
// the result of a challenge (RReq). cards.ts decides the outcome of the transaction.
import type { End, Odd, Script } from './cards.ts'
import type { SimulatedAreq } from './request.ts'
import { authenticationValueOf, eciOf, isMastercards, networkOf, type ValueForm } from './values.ts'

export interface Transaction {
  areq: SimulatedAreq
  script: Script
  acsTransID: string
  dsTransID: string
  requests: number
  results: number
  wrongCodes: number
  ended: End | undefined
  sessionData: string | undefined
}

type Message = Record<string, unknown>

const idsOf = ({ areq, acsTransID, dsTransID }: Transaction): Message => ({
  messageVersion: areq.messageVersion,
  threeDSServerTransID: areq.threeDSServerTransID,
  dsTransID,
  acsTransID,
})

export function aresOf(transaction: Transaction, transStatus: string, base: string): Message {
  return {
    messageType: 'ARes',
    ...idsOf(transaction),
    dsReferenceNumber: 'SIMULATED-DS',
    acsReferenceNumber: 'SIMULATED-ACS',
    acsOperatorID: 'SIMULATED',
    transStatus,
    ...(transStatus === 'C'
      ? {
          acsURL: `${base}/acs`,
          acsChallengeMandated: 'N',
          authenticationType: '02',
          acsRenderingType: { acsInterface: '02', acsUiTemplate: '01' },
        }
      : outcomeOf(transaction, transStatus)),
    ...(transStatus === 'N' ? { cardholderInfo: 'Please contact your bank about this payment.' } : {}),
  }
}

/** An ARes whose members aren't those of the standard. */
export function malformedAres({ areq }: Transaction): Message {
  return { messageType: 'ARes', messageVersion: areq.messageVersion, transStatus: 'maybe' }
}

/** The RReq. `cancel`: why the challenge ended early, if cardholder or issuer ended it. */
export function rreqOf(transaction: Transaction, { status, cancel }: { status: End; cancel?: string }): Message {
  return {
    messageType: 'RReq',
    ...idsOf(transaction),
    messageCategory: transaction.areq.messageCategory,
    authenticationType: '02',
    interactionCounter: String(transaction.wrongCodes + 1).padStart(2, '0'),
    transStatus: status,
    ...(cancel === undefined ? {} : { challengeCancel: cancel }),
    ...outcomeOf(transaction, status),
  }
}

/** transStatusReason by status: card authentication failed; ACS technical issue; suspected fraud. */
const REASONS: Readonly<Record<string, string>> = { N: '01', U: '14', R: '11' }
const DATA_ONLY = '80'

function outcomeOf({ areq, script, acsTransID }: Transaction, status: string): Message {
  const odd: Odd = ('odd' in script && script.odd) || {}
  const network = networkOf(areq.acctNumber)
  const reason = odd.reason ?? REASONS[status]
  const dataOnly = isMastercards(network) && status === 'U' && reason === DATA_ONLY
  const form: ValueForm = odd.value ?? (status === 'Y' || status === 'A' || dataOnly ? 'network' : 'none')
  const eci = odd.eci ?? eciOf(network, { status, category: areq.messageCategory, dataOnly })
  const authenticationValue = authenticationValueOf(network, form, acsTransID)
  return {
    ...(eci === 'none' ? {} : { eci }),
    ...(authenticationValue === undefined ? {} : { authenticationValue }),
    ...(reason === undefined ? {} : { transStatusReason: reason }),
    ...(odd.type === undefined ? {} : { authenticationType: odd.type }),
    ...(odd.cancel === undefined ? {} : { challengeCancel: odd.cancel }),
  }
}
