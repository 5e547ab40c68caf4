/*
 * dlsym: dlsym_route(handle, name, return address) says what to do. Where the
 * next dlsym has the answer we jump to it, since it looks at its return
 * address to know who asks.
 */
    .hidden dlsym_route

#if defined(__x86_64__)

    .text
    .p2align 4
    .globl dlsym_entry
    .type dlsym_entry, @function
dlsym_entry:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rdx
    call dlsym_route
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rdx, %rdx
    jz 1f
    jmpq *%rdx
1:  ret
    .cfi_endproc
    .size dlsym_entry, . - dlsym_entry

    .symver dlsym_entry, dlsym@GLIBC_2.2.5
    .set dlsym_entry_2_34, dlsym_entry
    .globl dlsym_entry_2_34
    .type dlsym_entry_2_34, @function
    .symver dlsym_entry_2_34, dlsym@@GLIBC_2.34

    /* Fit for indirect branch tracking and shadow stacks. */
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .string "GNU"
    .long 0xc0000002, 4, 3, 0

#elif defined(__aarch64__)

    .text
    .p2align 4
    .globl dlsym_entry
    .type dlsym_entry, %function
dlsym_entry:
    .cfi_startproc
    hint #34 /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    stp x0, x1, [sp, #16]
    mov x2, x30
    bl dlsym_route
    mov x9, x0
    mov x16, x1 /* from here a branch may go to any function */
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_restore 30
    .cfi_restore 29
    .cfi_def_cfa_offset 0
    cbz x16, 1f
    br x16
1:  mov x0, x9
    ret
    .cfi_endproc
    .size dlsym_entry, . - dlsym_entry

    .symver dlsym_entry, dlsym@GLIBC_2.17
    .set dlsym_entry_2_34, dlsym_entry
    .globl dlsym_entry_2_34
    .type dlsym_entry_2_34, %function
    .symver dlsym_entry_2_34, dlsym@@GLIBC_2.34

    /* Fit for branch target identification. */
    .section .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .string "GNU"
    .long 0xc0000000, 4, 1, 0

#else
#error "dlsym has no entry on this processor"
#endif

    .section .note.GNU-stack, "", %progbits
