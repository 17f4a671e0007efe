// `tokenmill results confirm RECEIPT`: an operator says that a receipt whose code is wrong stands as it is.
import { CONFIRM, confirmReceipt } from '../../src/acts/receipts.ts'
import type { JsonOption } from '../command.ts'
import { Stop } from '../exit.ts'
import { openVault, withSession } from '../open/open.ts'
import { byOf, type OperatorOptions } from '../open/operator.ts'
import { print, type Terminal } from '../terminal.ts'

const REFUSALS = {
  unknown: 'There is no such receipt; `tokenmill explain` finds receipts by what senders know of a job.',
  proved: 'tokenmill wrote this receipt as it is; there is nothing to confirm.',
} as const

export function confirm(terminal: Terminal, receiptId: string, options: JsonOption & OperatorOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const by = await byOf({ action: CONFIRM, subject: receiptId }, options, store, ring)
    const verdict = await confirmReceipt(store, ring, receiptId, by)
    if ('refused' in verdict) throw new Stop(REFUSALS[verdict.refused])
    const { clientId, kind, jti, status, code } = verdict.done
    print(
      terminal,
      options,
      { receipt_id: receiptId, client_id: clientId, kind, jti, status, code },
      `The receipt stands as it is: ${kind} ${jti} of ${clientId} is ${status} (${code}). Repeats are answered from it.`,
    )
  })
}
