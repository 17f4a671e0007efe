// Rows of results for tests: one that took effect, and one that was rejected.
import type { ResultRow } from '../../../../producers/rows/outcome/result-row.ts'

export const TOKEN = 't01ABCDEFGHJKMNPQRSTVWXYZ0'
export const created: ResultRow = {
  line: 2,
  reference: 'c-1',
  outcome: 'CREATED',
  code: 200,
  reuse_token: TOKEN,
  analytics_token: 'a1',
  bin: '41111111',
  last_four: '1111',
  expiry_month: 5,
  expiry_year: 2027,
  brand: 'VISA',
}
export const rejected: ResultRow = { line: 3, outcome: 'REJECTED', code: 400, reason: 'pan_luhn', field: 'body.card' }
