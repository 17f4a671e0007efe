// `tokenmill system reversals` and `system confirm ENVELOPE`: reversals that a stolen key signed after the theft. An operator who
// has found out that a gateway signed one has it done.
import { CONFIRM, type ConfirmRefusal, confirmReversal, listWithheld, type Withheld } from '../../src/acts/reversals.ts'
import { systemClock } from '../../src/clock.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { JsonOption } from '../command.ts'
import { Stop } from '../exit.ts'
import { openCommandStore, openQueues, openVault, withSession } from '../open/open.ts'
import { byOf, type OperatorOptions } from '../open/operator.ts'
import { readSystemKey } from '../open/system-clients.ts'
import { moment, print, type Terminal, table } from '../terminal.ts'

const REFUSALS: Record<ConfirmRefusal, string> = {
  unknown: 'There is no such reversal; `tokenmill system reversals` lists them.',
  unsigned: 'No stolen key of this installation signed this reversal: somebody wrote it into the failed set.',
  foreign: 'It undoes what no worker has verified as a request of a gateway.',
  unproved: 'tokenmill did not write the receipt of the job as it is: see `tokenmill results confirm`.',
  client_unknown: 'Its client does not exist any more.',
}

export function list(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { database, store } = await openCommandStore(session)
    const found = await listWithheld(await openQueues(session, database))
    const undone = new Map(
      (await receipts.findAll(store, [...new Set(found.map(({ request }) => request.receipt_id))])).map(receipt => [
        receipt.receiptId,
        receipt,
      ]),
    )
    const jobOf = ({ request }: Withheld) => undone.get(request.receipt_id)
    print(
      terminal,
      options,
      found.map(one => ({
        envelope: one.envelope,
        client_id: one.clientId,
        receipt_id: one.request.receipt_id,
        kind: jobOf(one)?.kind,
        jti: jobOf(one)?.jti,
        signed_at: moment(one.signedAt),
      })),
      table(
        ['ENVELOPE', 'CLIENT', 'RECEIPT', 'KIND', 'JTI', 'SIGNED'],
        found.map(one => [
          one.envelope,
          one.clientId,
          one.request.receipt_id,
          jobOf(one)?.kind ?? '-',
          jobOf(one)?.jti ?? '-',
          moment(one.signedAt),
        ]),
      ),
    )
  })
}

export function confirm(terminal: Terminal, envelope: string, options: JsonOption & OperatorOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { database, store, ring } = await openVault(session)
    const signingKey = await readSystemKey(session.config.dataDir, 'worker')
    const queues = await openQueues(session, database)
    const by = await byOf({ action: CONFIRM, subject: envelope }, options, store, ring)
    const signing = { signingKey, audience: session.config.audience, now: systemClock() }
    const verdict = await confirmReversal({ store, queues, ring }, envelope, by, signing)
    if ('refused' in verdict) throw new Stop(REFUSALS[verdict.refused])
    const { clientId, request } = verdict.done
    print(
      terminal,
      options,
      { envelope, client_id: clientId, receipt_id: request.receipt_id },
      `A worker undoes ${request.receipt_id} of ${clientId} now, unless another request has asked for it.`,
    )
  })
}
