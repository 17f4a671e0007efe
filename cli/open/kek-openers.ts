// The key-encryption keys that this product can open: files, tokens of PKCS#11, and AWS KMS.
import { fileKeks, type KekOpeners } from '../../src/vault/kek/openers.ts'
import { kmsKeks } from '../../src/vault/kms/open.ts'
import { pkcs11Keks } from '../../src/vault/pkcs11/open.ts'

export const KEK_OPENERS: KekOpeners = { file: fileKeks, pkcs11: pkcs11Keks, 'aws-kms': kmsKeks }
