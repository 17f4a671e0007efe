// A PKCS#11 module for tests: SoftHSM with three differences. For AES-GCM it writes a nonce of its own into the caller's
// buffer when an encryption begins, as tokens in FIPS mode do. Each login adds a line to the file `logins` of the folder
// SHIM_FOLDER. At a file `hang` in that folder it removes that file and never comes back from a decryption, at a file
// `crash` it removes that file and crashes. While there is a file `break`, each decryption but the first of a process fails.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#define CK_PTR *
#define CK_DECLARE_FUNCTION(returnType, name) returnType name
#define CK_DECLARE_FUNCTION_POINTER(returnType, name) returnType(*name)
#define CK_CALLBACK_FUNCTION(returnType, name) returnType(*name)
#define NULL_PTR 0
#include <pkcs11.h>

static CK_FUNCTION_LIST functions;
static CK_C_EncryptInit encrypt_init;
static CK_C_DecryptInit decrypt_init;
static CK_C_Login login;

static CK_RV encrypt_init_with_own_nonce(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key)
{
  if (mechanism->mechanism == CKM_AES_GCM)
  {
    CK_GCM_PARAMS_PTR parameters = mechanism->pParameter;
    static const CK_BYTE zeros[12];
    if (parameters->ulIvLen != sizeof zeros || memcmp(parameters->pIv, zeros, sizeof zeros) != 0)
      return CKR_MECHANISM_PARAM_INVALID;
    if (getrandom(parameters->pIv, parameters->ulIvLen, 0) != sizeof zeros)
      return CKR_DEVICE_ERROR;
  }
  return encrypt_init(session, mechanism, key);
}

static const char *in_folder(const char *name)
{
  static char path[4096];
  const char *folder = getenv("SHIM_FOLDER");
  snprintf(path, sizeof path, "%s/%s", folder ? folder : "/nonexistent", name);
  return path;
}

static CK_RV decrypt_init_with_trouble(CK_SESSION_HANDLE session, CK_MECHANISM_PTR mechanism, CK_OBJECT_HANDLE key)
{
  if (unlink(in_folder("hang")) == 0)
    for (;;)
      pause();
  if (unlink(in_folder("crash")) == 0)
    abort();
  static int decryptions;
  if (++decryptions > 1 && access(in_folder("break"), F_OK) == 0)
    return CKR_DEVICE_ERROR;
  return decrypt_init(session, mechanism, key);
}

static CK_RV login_with_count(CK_SESSION_HANDLE session, CK_USER_TYPE user, CK_UTF8CHAR_PTR pin, CK_ULONG length)
{
  FILE *logins = fopen(in_folder("logins"), "a");
  if (logins)
  {
    fputs("login\n", logins);
    fclose(logins);
  }
  return login(session, user, pin, length);
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR list)
{
  void *module = dlopen(TOKEN_MODULE, RTLD_NOW | RTLD_LOCAL);
  CK_C_GetFunctionList get = module ? (CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList") : 0;
  CK_FUNCTION_LIST_PTR theirs;
  if (!get || get(&theirs) != CKR_OK)
    return CKR_GENERAL_ERROR;
  functions = *theirs;
  encrypt_init = functions.C_EncryptInit;
  decrypt_init = functions.C_DecryptInit;
  login = functions.C_Login;
  functions.C_EncryptInit = encrypt_init_with_own_nonce;
  functions.C_DecryptInit = decrypt_init_with_trouble;
  functions.C_Login = login_with_count;
  *list = &functions;
  return CKR_OK;
}
