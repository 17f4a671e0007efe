// Codes of rows for tests of the store alone, which have no vault.
import { createHmac } from 'node:crypto'
import type { Coder } from '../../src/store/codes.ts'

const macOf = (text: string) => createHmac('sha256', 'a key of this test').update(text).digest().subarray(0, 16)

/** It has version 1 alone. */
export const CODER: Coder = {
  receiptMac: text => ({ mac: macOf(text), keyVersion: 1 }),
  receiptMacBy: (text, keyVersion) => (keyVersion === 1 ? macOf(text) : undefined),
}
