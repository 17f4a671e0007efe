// The lists that a person takes from the console as CSV, with their filters: the parameters of `list.exported`.
import { z } from 'zod'
import { text } from '../envelope/text.ts'

const clientId = () => z.string().regex(/^c[a-z0-9]{25}$/)
const day = () => z.iso.date()
const word = (form: RegExp) => z.string().regex(form)

/** The subject of `refused` is a batch's id, that of the others the word of the list. Days are in UTC, moments in ms since the epoch. */
export const ExportParameters = z.union([
  z.strictObject({ list: z.literal('refused'), client_id: clientId() }),
  z.strictObject({
    list: z.literal('batches'),
    state: word(/^[a-z]{1,16}$/).optional(),
    client_id: clientId().optional(),
    since: day().optional(),
    until: day().optional(),
  }),
  z.strictObject({
    list: z.literal('audit'),
    actor: text(1, 300).optional(),
    action: word(/^[a-z0-9.-]{1,64}$/).optional(),
    outcome: z.enum(['done', 'refused', 'failed']).optional(),
    since: day().optional(),
    until: day().optional(),
    /** The id of a row of the audit: only rows about its subject. */
    like: z.int().min(1).optional(),
  }),
  z.strictObject({
    list: z.literal('failed'),
    kind: word(/^[a-z-]{1,32}$/).optional(),
    code: word(/^[a-z_]{1,40}$/).optional(),
    client_id: text(1, 128).optional(),
    since: z.int().min(0).max(253_402_300_799_999).optional(),
  }),
])
export type ExportParameters = z.infer<typeof ExportParameters>
